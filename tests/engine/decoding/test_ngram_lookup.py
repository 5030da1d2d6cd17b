"""N-gram lookup: drafts for the reader to verify, and an opinion from text that the reader has not read."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.drafting import LONGEST_MATCH, IndexedText, NgramLookup, NgramMatch
from mercury_lab.engine import Engine

from tests.support import tiny

IDS = st.lists(st.integers(0, 5), max_size=30)
BLOCKS = st.lists(IDS, max_size=4)


def run(*blocks: list[int], most: int = 1000) -> IndexedText:
    """Unread text."""
    return IndexedText([np.array(block, np.int32) for block in blocks], most)


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
def test_the_draft_is_what_followed_an_earlier_occurrence_of_the_last_tokens(blocks, before, draft):
    assert NgramLookup(blocks).find(before).draft == draft


@pytest.mark.parametrize(
    ("blocks", "before", "draft"),
    [
        ([[1, 2, 3], [1, 2, 4], [7]], [1, 2], [4]),
        ([[1, 2, 3, 1, 2, 4]], [1, 2], [4]),
        ([[1, 2, 3]], [1, 2, 5, 1, 2], [5, 1]),
    ],
    ids=["in the last block", "last in a block", "in the text itself"],
)
def test_the_nearest_of_equally_long_matches_counts(blocks, before, draft):
    assert NgramLookup(blocks).find(before).draft == draft


@given(BLOCKS, IDS, IDS)
def test_a_match_is_the_longest_there_is_and_its_draft_follows_it(blocks, lookup_text, before):
    texts = [*blocks, lookup_text, before]
    found = NgramLookup(blocks, run(lookup_text)).find(before)

    def is_followed(last: list[int]) -> bool:
        return any(text[at : at + len(last)] == last for text in texts for at in range(len(text) - len(last)))

    longest = max((n for n in range(1, min(LONGEST_MATCH, len(before)) + 1) if is_followed(before[-n:])), default=0)
    assert found.length == longest and bool(found.draft) == bool(longest)
    repeated = before[len(before) - longest :] + found.draft
    assert not longest or any(text[at : at + len(repeated)] == repeated for text in texts for at in range(len(text)))


@pytest.fixture(scope="module")
def writing(tmp_path_factory) -> Engine:
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("repeats"), rank=0, seed=1))


REQUEST = FillRequest(near=tiny.SAMPLE[:400], far=(tiny.SAMPLE[400:900],), multiline=True, max_slots=32)


def drafting(monkeypatch, draft: Callable[[Sequence[int]], list[int]]) -> None:
    """Replace the drafts of n-gram lookup."""
    monkeypatch.setattr(NgramLookup, "find", lambda self, before: NgramMatch(draft=draft(before)))


def test_right_drafts_save_steps_and_no_draft_changes_the_text(writing, monkeypatch):
    behind: list[list[int]] = []
    drafting(monkeypatch, lambda before: behind.append([*before]) or [])
    plain = writing.fill(REQUEST)
    drafting(monkeypatch, lambda before: behind[-1][len(before) :])
    right = writing.fill(REQUEST)
    drafting(monkeypatch, lambda before: [7] * 8)
    wrong = writing.fill(REQUEST)
    assert plain.steps > 4
    assert right.steps < plain.steps / 2
    assert right.text == wrong.text == plain.text
    assert right.confidence == pytest.approx(plain.confidence, rel=1e-3)


TYPED = 400
TYPED_AGAIN = FillRequest(near=tiny.SAMPLE[:TYPED], multiline=True, max_slots=16)


def test_a_long_match_in_unread_text_outweighs_the_reader_and_a_short_one_does_not(writing):
    alone = writing.fill(TYPED_AGAIN)
    long, short = tiny.SAMPLE[TYPED - 100 : TYPED + 200], tiny.SAMPLE[TYPED : TYPED + 200]
    fill = writing.fill(replace(TYPED_AGAIN, lookup_text=(long,)))
    assert len(fill.text) > 20 and tiny.SAMPLE.startswith(fill.text, TYPED)
    assert fill.steps < alone.steps
    assert writing.fill(replace(TYPED_AGAIN, lookup_text=(short,))).text == alone.text


def test_lookup_text_is_not_read_and_is_tokenized_once(writing, monkeypatch):
    chunks = tuple(f"unread_{number} = {number}\n" for number in range(20))
    encoded: list[str] = []
    encode = writing.tokenizer.encode
    monkeypatch.setattr(writing.tokenizer, "encode", lambda text: (encoded.append(text), encode(text))[1])
    writing.cache.clear()
    read = writing.fill(REQUEST).tokens_read
    writing.cache.clear()
    assert writing.fill(replace(REQUEST, lookup_text=chunks)).tokens_read == read > 0
    changed = (*chunks[:7], "unread_7 = 8\n", *chunks[8:])
    writing.fill(replace(REQUEST, lookup_text=changed))
    assert sorted(set(encoded) & {*chunks, *changed}) == sorted(text for text in encoded if text.startswith("unread"))
