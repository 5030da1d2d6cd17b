"""The unmasking rule, and how the loop starts, stops and follows its rules."""

from dataclasses import replace
from threading import Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mercury_engine.api import Fill, FillRequest
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.denoising.unmasking import choose_by_confidence, choose_by_entropy
from mercury_engine.errors import Cancelled
from mercury_engine.results import ranked
from mercury_engine.worth import Worth

from tests.support import tiny

NEAR = "import os\n\n\ndef view(self):\n    return self.vie"
SUFFIX = ("(1)\n", "\n\nclass View:\n    pass\n")

SLOTS = st.lists(st.tuples(st.floats(0, 6), st.booleans()), min_size=1, max_size=16)


@pytest.fixture(scope="module", params=[4, 0], ids=["writer", "reader only"])
def engine(request, tmp_path_factory):
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("denoise") / "model", rank=request.param))


@pytest.fixture(scope="module")
def writing(tmp_path_factory):
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("denoise") / "model"))


@given(SLOTS, st.floats(0, 3))
def test_chosen_slots_are_masked_at_least_one_and_within_the_bound(slots, bound):
    entropy, masked = (np.array(column) for column in zip(*slots, strict=True))
    chosen = choose_by_entropy(entropy.astype(np.float32), masked, bound)
    assert not (chosen & ~masked).any()
    assert chosen.any() == masked.any()
    risked = entropy.astype(np.float32)[chosen]
    if len(risked) > 1:
        assert float(risked.sum() - risked.max()) <= bound + 1e-4


@given(SLOTS, st.floats(0, 3))
def test_no_slot_is_skipped_for_a_less_certain_one(slots, bound):
    entropy, masked = (np.array(column) for column in zip(*slots, strict=True))
    chosen = choose_by_entropy(entropy.astype(np.float32), masked, bound)
    left = masked & ~chosen
    if chosen.any() and left.any():
        assert entropy[chosen].max() <= entropy[left].min()
        assert float(entropy.astype(np.float32)[chosen].sum()) > bound - 1e-4  # one more would break the bound


@given(SLOTS, st.floats(0, 6))
def test_confident_slots_are_masked_and_at_least_one(slots, threshold):
    confidence, masked = (np.array(column) for column in zip(*slots, strict=True))
    chosen = choose_by_confidence(confidence.astype(np.float32), masked, threshold)
    assert not (chosen & ~masked).any()
    assert chosen.any() == masked.any()
    assert bool(chosen[masked & (confidence.astype(np.float32) >= threshold)].all())


def test_a_cancelled_request_raises_before_any_step(engine):
    request = FillRequest(near=NEAR, suffix=SUFFIX)
    request.cancel.set()
    steps = count_steps(engine)
    with pytest.raises(Cancelled):
        engine.fill(request)
    assert steps() == 0


def count_steps(engine, after=None, action=None):
    """Counts steps and calls `action` in step `after`; the result stops counting and returns the count."""
    original, seen = type(engine.denoiser)._step, []

    def step(*arguments):
        seen.append(1)
        if len(seen) == after:
            action()
        return original(engine.denoiser, *arguments)

    engine.denoiser._step = step
    return lambda: (engine.denoiser.__dict__.pop("_step"), len(seen))[1]


def test_a_flag_set_during_a_step_stops_before_the_next(engine):
    cancel = Event()
    steps = count_steps(engine, 2, cancel.set)
    with pytest.raises(Cancelled):
        engine.fill(FillRequest(near=NEAR, suffix=SUFFIX, cancel=cancel, multiline=True))
    assert steps() == 2


def test_a_deadline_in_the_past_gives_an_empty_fill(engine):
    fill, canvases = tiny.watched(engine, FillRequest(near=NEAR, suffix=SUFFIX, deadline_ms=0))
    assert (fill.text, fill.steps, canvases) == ("", 0, [])


def test_slots_are_settled_from_the_left_and_never_changed(engine):
    fill, canvases = tiny.watched(engine, FillRequest(near=NEAR, suffix=SUFFIX, max_slots=12, multiline=True))
    before: list[str] = []
    assert fill.steps == len(canvases) > 0
    for canvas in canvases:
        states = [slot.state for slot in canvas]
        settled = [slot.text for slot in canvas if slot.state == "committed"]
        assert states[: len(settled)] == ["committed"] * len(settled)
        assert settled[: len(before)] == before
        assert len(settled) > len(before) or canvas is canvases[-1]
        before = settled


def test_steps_are_limited_and_the_last_one_settles_what_the_writer_drafted(writing):
    request = FillRequest(near=NEAR, suffix=SUFFIX, max_slots=12, multiline=True)
    free, first = tiny.watched(writing, request)
    once, only = tiny.watched(writing, replace(request, max_steps=1))
    assert free.steps > 1
    assert once.steps == 1
    settled = [slot for slot in only[0] if slot.state == "committed"]
    assert len(settled) > len([slot for slot in first[0] if slot.state == "committed"])


def test_only_the_first_candidate_shows_its_steps(engine):
    request = FillRequest(near=NEAR, suffix=(SUFFIX[1],), max_slots=8)
    _, alone = tiny.watched(engine, request)
    _, several = tiny.watched(engine, replace(request, candidates=3))
    assert [[slot.text for slot in canvas] for canvas in several] == [[slot.text for slot in c] for c in alone]


def test_unwatched_steps_build_no_views(engine, monkeypatch):
    monkeypatch.setattr(Canvas, "view", lambda *_: pytest.fail("a view was built"))
    assert engine.fill(FillRequest(near=NEAR, suffix=SUFFIX)).steps > 0


def test_candidates_differ_and_come_surest_first(engine):
    fill = engine.fill(FillRequest(near=NEAR, suffix=(SUFFIX[1],), max_slots=12, candidates=8))
    found = [fill, *fill.others]
    assert len(found) > 1
    assert len({f.text for f in found}) == len(found)
    assert [f.confidence for f in found] == sorted((f.confidence for f in found), reverse=True)


@pytest.mark.parametrize(
    ("filled", "kept"),
    [
        ([("ic = false;", 0.5), ("ic", 0.99), ("ic = true;", 0.3)], ["ic = false;", "ic = true;"]),
        ([("s", 0.3), ("s you", 0.4)], ["s you", "s"]),
        ([("a", 0.3), ("a", 0.4), ("", 0.9)], ["a"]),
    ],
)
def test_a_candidate_that_is_the_beginning_of_another_is_dropped_unless_it_is_the_best_guess(filled, kept):
    found = ranked([Fill(text, confidence, steps=1, elapsed=0.0) for text, confidence in filled])
    assert [each.text for each in (found, *found.others)] == kept


def test_candidates_share_the_forward_passes(writing):
    calls = []
    writes, reads = writing.writer.write_canvases, writing.reader.read_together
    writing.writer.write_canvases = lambda *given: (calls.append("write"), writes(*given))[1]
    writing.reader.read_together = lambda *given: (calls.append("read"), reads(*given))[1]
    writing.fill(FillRequest(near=NEAR, suffix=SUFFIX))  # prefills the context
    calls.clear()
    fill = writing.fill(FillRequest(near=NEAR, suffix=SUFFIX, max_slots=8, candidates=3, multiline=True))
    steps = len(calls) // 2
    assert calls == ["write", "read"] * steps
    assert max(f.steps for f in (fill, *fill.others)) <= steps <= 8  # slots: every step settles at least one


def test_the_best_candidate_of_several_is_filled_as_if_alone(engine):
    request = FillRequest(near=NEAR, suffix=(SUFFIX[1],), max_slots=8)
    alone = engine.fill(request)
    several = engine.fill(replace(request, candidates=3))
    assert alone.text in {several.text, *(f.text for f in several.others)}


def test_a_right_draft_is_settled_in_one_step(writing, monkeypatch):
    request = FillRequest(near=NEAR, suffix=SUFFIX, max_slots=8, multiline=True)
    reading = replace(writing.denoiser.rule, next_weight=0.0, later_weight=0.0, end_weight=0.0)
    monkeypatch.setattr(writing.denoiser, "rule", reading)
    tokens: list[int] = []
    settle, made = Canvas.settle, writing._canvas
    with monkeypatch.context() as noting:
        noting.setattr(Canvas, "settle", lambda self, *given: (tokens.append(given[0]), settle(self, *given))[1])
        plain, _ = tiny.watched(writing, request)
    monkeypatch.setattr(writing, "_canvas", lambda *given: replace_draft(made(*given), tokens))
    drafted, _ = tiny.watched(writing, request)
    assert drafted.steps == 1 < plain.steps
    assert drafted.text == plain.text


def replace_draft(canvas: Canvas, tokens: list[int]) -> Canvas:
    canvas.draft = [token for token in tokens if token != canvas.vocabulary.end_id]
    return canvas


def test_a_draft_longer_than_the_canvas_is_cut(engine):
    request = FillRequest(near=NEAR, suffix=SUFFIX, max_slots=4, draft="x = 1 + 2 + 3 + 4 + 5", multiline=True)
    assert all(len(view) <= 5 for view in tiny.watched(engine, request)[1])


def breaking(*positions):
    """A syntax check that rejects these positions, one per call, and records the texts that it saw."""
    left, seen = list(positions), []

    def check(text):
        seen.append(text)
        return left.pop(0) if left else None

    check.seen = seen  # type: ignore[attr-defined]
    return check


@pytest.fixture(scope="module")
def sentence(writing):
    """A request whose fill ends with an end marker, and that fill."""
    for seed in range(60):
        request = FillRequest(near=f"x{seed} = ", suffix=("\n",), max_slots=24)
        fill, canvases = tiny.watched(writing, request)
        if len(fill.text) > 6 and canvases[-1] and all(slot.state == "committed" for slot in canvases[-1]):
            return request, fill
    pytest.fail("no random fill ended by itself")


def test_slots_that_break_the_syntax_are_filled_differently(writing, sentence):
    request, plain = sentence
    check = breaking(3)
    mended = writing.fill(replace(request, check=check))
    assert check.seen[0] == plain.text
    assert mended.text != plain.text
    assert mended.text.startswith(plain.text[:1])
    assert mended.steps > plain.steps


def test_a_fill_that_parses_is_left_alone(writing, sentence):
    request, plain = sentence
    check = breaking()
    assert writing.fill(replace(request, check=check)).text == plain.text
    assert check.seen == [plain.text]


def test_a_fill_stops_when_nothing_longer_can_be_worth_showing(engine):
    request = FillRequest(near=NEAR, suffix=SUFFIX, max_slots=16)
    assert engine.fill(replace(request, worth=Worth())).steps < engine.fill(request).steps


def test_a_fill_whose_errors_cost_nothing_goes_on_to_its_end(engine):
    request = FillRequest(near=NEAR, suffix=SUFFIX, max_slots=16)
    assert engine.fill(replace(request, worth=Worth(0.0, 0.0))).steps == engine.fill(request).steps


def test_several_lines_end_with_their_block_unless_they_were_asked_for(engine):
    canvas = Canvas(
        engine.denoiser.vocabulary,
        engine.tokenizer.encode("\n    return 1\nx = 2\n"),
        0,
        line="def f():",
        multiline=True,
    )
    canvas.settled = len(canvas.ids)
    assert engine.denoiser.text(canvas) == "\n    return 1"
    assert engine.denoiser.goes_beyond(canvas)
    canvas.line = None
    assert engine.denoiser.text(canvas) == "\n    return 1\nx = 2\n"
    assert not engine.denoiser.goes_beyond(canvas)
