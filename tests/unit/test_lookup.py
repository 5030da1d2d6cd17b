"""Drafts from the context: found where the text repeats, checked by the reader, never deciding anything."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mercury_engine.engine import Engine
from mercury_engine.lookup import LONG_ENOUGH, Lookup
from mercury_engine.requests import FillRequest

from tests.unit import tiny

IDS = st.lists(st.integers(0, 5), max_size=30)


@pytest.mark.parametrize(
    ("blocks", "before", "draft"),
    [
        ([], [], []),
        ([], [1], []),
        ([[1, 2, 3, 4, 5]], [9], []),
        ([[1, 2, 3, 4, 5]], [9, 1, 2], [3, 4]),
        ([[1, 2, 3, 4, 5]], [9, 2], [3]),
        ([[1, 2, 3]], [9, 1, 2], [3]),
        ([[9, 1, 2]], [1, 2], []),
        ([[1], [2, 3]], [1, 2], [3]),
    ],
)
def test_what_followed_the_last_tokens_where_they_stood_before(blocks, before, draft):
    assert Lookup(blocks).draft(before, 2) == draft


@pytest.mark.parametrize(
    ("blocks", "before", "draft"),
    [
        ([[1, 2, 3], [1, 2, 4], [7]], [1, 2], [4]),
        ([[1, 2, 3, 1, 2, 4]], [1, 2], [4]),
        ([[1, 2, 3]], [1, 2, 5, 1, 2], [5]),
    ],
    ids=["in the last block", "last in a block", "in the text itself"],
)
def test_of_repeats_as_long_the_nearest_counts(blocks, before, draft):
    assert Lookup(blocks).draft(before, 1) == draft


def test_a_longer_repeat_counts_more_than_a_nearer_one():
    assert Lookup([[5, 6, 1, 2, 3], [1, 2, 4]]).draft([6, 1, 2], 1) == [3]
    assert Lookup([[5, 6, 1, 2, 3]]).draft([1, 2, 4, 5, 6, 1, 2], 1) == [3]


def test_a_draft_is_as_long_as_the_repeat():
    block = [*range(30)]
    for length in (1, 2, 5, LONG_ENOUGH, LONG_ENOUGH + 2):
        assert len(Lookup([block]).draft([99, *block[:10][-length:]], 20)) == min(length, LONG_ENOUGH)


@given(st.lists(IDS, max_size=4), IDS, st.integers(1, 6))
def test_a_draft_is_text_that_stands_behind_the_same_tokens(blocks, before, most):
    draft = Lookup(blocks).draft(before, most)
    assert len(draft) <= most
    run = before[-1:] + draft
    places = [(text, at) for text in (*blocks, before) for at in range(len(text)) if text[at : at + len(run)] == run]
    assert places or not draft
    behind = {text[at] for text in (*blocks, before) for at in range(1, len(text)) if text[at - 1 : at] == before[-1:]}
    assert bool(draft) == bool(behind)


@pytest.fixture(scope="module")
def writing(tmp_path_factory) -> Engine:
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("lookup"), rank=4))


REQUEST = FillRequest(near=tiny.SAMPLE[:400], far=(tiny.SAMPLE[400:900],), multiline=True, max_slots=32)


def told(engine: Engine, drafts: str, request: FillRequest = REQUEST, **weights: float):
    """A fill and how often the writer was asked, under a rule."""
    kept, write, calls = engine.denoiser.rule, engine.writer.write, []
    engine.denoiser.rule = replace(kept, drafts=drafts, next_weight=0.0, later_weight=0.0, end_weight=0.0)
    engine.writer.write = lambda *given: (calls.append("write"), write(*given))[1]
    try:
        return engine.fill(request), len(calls)
    finally:
        engine.denoiser.rule, engine.writer.write = kept, write


def test_right_drafts_save_steps_and_no_draft_changes_the_text(writing, monkeypatch):
    behind: list[list[int]] = []
    monkeypatch.setattr(Lookup, "draft", lambda self, before, most: behind.append([*before]) or [])
    plain, asked = told(writing, "context")
    monkeypatch.setattr(Lookup, "draft", lambda self, before, most: behind[-1][len(before) :][:most])
    right, _ = told(writing, "context")
    monkeypatch.setattr(Lookup, "draft", lambda self, before, most: [7] * most)
    wrong, _ = told(writing, "context")
    assert plain.steps > 4
    assert right.steps < plain.steps / 2
    assert right.text == wrong.text == plain.text == told(writing, "none")[0].text
    assert right.confidence == pytest.approx(plain.confidence, rel=1e-3)
    assert asked == 0


def test_a_draft_token_that_is_settled_is_not_read_again(writing, monkeypatch):
    behind: list[list[int]] = []
    monkeypatch.setattr(Lookup, "draft", lambda self, before, most: behind.append([*before]) or [])
    plain, _ = told(writing, "context")
    rows: list[int] = []
    read = writing.reader.read
    monkeypatch.setattr(writing.reader, "read", lambda ids, *rest: (rows.append(ids.shape[1]), read(ids, *rest))[1])
    monkeypatch.setattr(Lookup, "draft", lambda self, before, most: behind[-1][len(before) :][:3])
    fill, _ = told(writing, "context")
    assert fill.text == plain.text
    assert fill.steps < plain.steps / 2 and max(rows[-fill.steps :]) == 1 + 3


@pytest.mark.parametrize("seen", [{"on_step": lambda canvas: None}, {"max_steps": 3}])
def test_the_writer_is_asked_where_its_drafts_are_seen_or_steps_are_few(writing, seen):
    fill, asked = told(writing, "context", replace(REQUEST, **seen))
    assert asked == fill.steps > 0
