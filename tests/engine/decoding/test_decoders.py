"""What decoders do alike, of causal models and of masked ones: how a fill starts, stops, is watched, is checked."""

import math
from dataclasses import replace

import pytest
from mercury_engine.api import Control, Fill, FillRequest
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.decoding.results import ranked
from mercury_engine.errors import Cancelled
from mercury_engine.models import batching
from mercury_engine.models.batching import DeadlineReached
from mercury_engine.utility import Utility

from tests.support import masked, tiny
from tests.support.answering import passes_from_now

NEAR = "import os\n\n\ndef view(self):\n    return self.vie"
SUFFIX = ("(1)\n", "\n\nclass View:\n    pass\n")


@pytest.fixture(scope="module", params=["causal", "masked", "A2D-qwen2", "SDAR"])
def engine(request, tmp_path_factory):
    """Random weights that end no text at once, and of several candidates find different ones."""
    folder = tmp_path_factory.mktemp("decoding") / "model"
    if request.param in masked.TYPES:
        return tiny.load(masked.folder(folder, request.param)[0]).varied(DiffusionOptions(exact=True))
    rank, seed = {"causal": (0, 0), "masked": (4, 2)}[request.param]
    return tiny.load(tiny.folder(folder, rank=rank, seed=seed))


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("decoding") / "model", rank=0))


@pytest.fixture
def passes(engine, monkeypatch):
    """Grows with every pass."""
    return passes_from_now(monkeypatch)


def test_a_cancelled_request_raises_before_any_pass(engine, passes):
    control = Control()
    control.cancel.set()
    with pytest.raises(Cancelled):
        engine.fill(FillRequest(near=NEAR, suffix=SUFFIX), control)
    assert not passes


def test_a_flag_set_during_a_pass_stops_before_the_next(engine, monkeypatch):
    control = Control()
    request = FillRequest(near=NEAR, suffix=SUFFIX, multiline=True)
    engine.fill(request)  # which reads all context
    passes = passes_from_now(monkeypatch, lambda number: control.cancel.set() if number == 2 else None)
    with pytest.raises(Cancelled):
        engine.fill(request, control)
    assert len(passes) == 2


def test_tokens_are_accepted_from_the_left_and_never_changed(engine):
    fill, views = tiny.watched(engine, FillRequest(near=NEAR, suffix=SUFFIX, max_slots=12, multiline=True))
    assert len(views) == fill.steps + 1 > 1
    before: list[str] = []
    for view in views:
        states = [slot.state for slot in view]
        accepted = [slot.text for slot in view[: (*states, "mask").index("mask")] if slot.state == "committed"]
        assert accepted[: len(before)] == before
        before = accepted


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
    fills = [Fill(text, confidence, steps=1, elapsed=0.0) for text, confidence in filled]
    found = ranked(fills, [-math.inf] * len(fills))
    assert [each.text for each in (found, *found.others)] == kept


def test_a_fill_after_which_the_text_below_is_likelier_comes_first():
    fills = [Fill("sure", 0.9, steps=1, elapsed=0.0), Fill("fitting", 0.1, steps=1, elapsed=0.0)]
    found = ranked(fills, [-9.0, -2.0])
    assert [each.text for each in (found, *found.others)] == ["fitting", "sure"]


@pytest.mark.parametrize("engine", ["causal", "masked"], indirect=True)
def test_candidates_share_the_forward_passes(engine, passes):
    engine.fill(FillRequest(near=NEAR, suffix=SUFFIX))  # prefills the context
    passes.clear()
    fill = engine.fill(FillRequest(near=NEAR, suffix=SUFFIX, max_slots=8, candidates=3, multiline=True))
    assert max(f.steps for f in (fill, *fill.others)) <= len(passes) <= 8  # every step accepts a token or unmasks one


@pytest.mark.parametrize("engine", ["A2D-qwen2", "SDAR"], indirect=True)
def test_where_candidates_share_no_passes_the_first_is_finished_before_the_others_begin(engine):
    request = FillRequest(near=NEAR, suffix=(SUFFIX[1],), max_slots=8)

    def written(request: FillRequest, most: float) -> tuple[list[Hypothesis], int]:
        """The hypotheses of a fill whose time is up after so many passes, and the passes."""
        steps, passes = engine.decoder.write(request, Control()), 0
        try:
            forward = next(steps)
            while passes < most:
                passes += 1
                forward = steps.send(batching.run(engine.reader, [forward])[0])
            steps.throw(DeadlineReached())
        except StopIteration as end:
            return end.value[0], passes
        pytest.fail("time was up")

    [alone], passes = written(request, math.inf)
    first, *others = written(replace(request, candidates=3), passes)[0]
    assert first.ids == alone.ids and first.ended == alone.ended
    assert len(others) == 2 and not any(each.steps for each in others)


def breaking(*positions):
    """A syntax check that rejects these positions, one per call, and records the texts that it saw."""
    left, seen = list(positions), []

    def check(text):
        seen.append(text)
        return left.pop(0) if left else None

    check.seen = seen  # type: ignore[attr-defined]
    return check


@pytest.fixture(scope="module")
def sentence(causal):
    """A request whose fill ends with an end marker, and that fill."""
    for seed in range(60):
        request = FillRequest(near=f"x{seed} = ", suffix=("\n",), max_slots=24)
        fill = causal.fill(request)
        if len(fill.text) > 6 and fill.is_finished:
            return request, fill
    pytest.fail("no random fill ended by itself")


def test_text_that_breaks_the_syntax_is_filled_differently(causal, sentence):
    request, plain = sentence
    check = breaking(3)
    mended = causal.fill(request, Control(check=check))
    assert check.seen[0] == plain.text
    assert mended.text != plain.text
    assert mended.text.startswith(plain.text[:1])
    assert mended.steps > plain.steps


def test_a_fill_stops_when_nothing_longer_can_be_worth_showing(engine):
    request = FillRequest(near=NEAR, suffix=SUFFIX, max_slots=16)
    assert engine.fill(replace(request, utility=Utility())).steps < engine.fill(request).steps


def test_several_lines_end_with_their_block_unless_they_were_asked_for(engine):
    for utility, text in ((Utility(), "\n    go()"), (None, "\n    go()\nx = 2\n")):
        request = FillRequest("if x:", multiline=True, utility=utility)
        found = Hypothesis(engine.decoder.rules, request, [], 32)
        for token in engine.tokenizer.encode("\n    go()\nx = 2\n"):
            found.accept(token, 0.5)
        assert found.text() == text
        assert found.leaves_gap == (utility is not None)
