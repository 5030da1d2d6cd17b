"""Which slots are committed, and how the loop starts, stops and keeps to its rules."""

from threading import Event

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mercury_engine.commit import choose, choose_confident
from mercury_engine.errors import Cancelled
from mercury_engine.requests import FillRequest

from tests.unit import tiny

NEAR = "import os\n\n\ndef view(self):\n    return self.vie"
SUFFIX = ("(1)\n", "\n\nclass View:\n    pass\n")

SLOTS = st.lists(st.tuples(st.floats(0, 6), st.booleans()), min_size=1, max_size=16)


@pytest.fixture(scope="module", params=[4, 0], ids=["writer", "reader only"])
def engine(request, tmp_path_factory):
    return tiny.load(tiny.folder(tmp_path_factory.mktemp("denoise") / "model", rank=request.param))


@given(SLOTS, st.floats(0, 3))
def test_chosen_slots_are_masked_at_least_one_and_within_the_bound(slots, bound):
    entropy, masked = (torch.tensor(column) for column in zip(*slots, strict=True))
    chosen = choose(entropy.float(), masked, bound)
    assert not (chosen & ~masked).any()
    assert chosen.any() == masked.any()
    risked = entropy.float()[chosen]
    if len(risked) > 1:
        assert float(risked.sum() - risked.max()) <= bound + 1e-4


@given(SLOTS, st.floats(0, 3))
def test_no_slot_is_passed_over_for_a_less_certain_one(slots, bound):
    entropy, masked = (torch.tensor(column) for column in zip(*slots, strict=True))
    chosen = choose(entropy.float(), masked, bound)
    left = masked & ~chosen
    if chosen.any() and left.any():
        assert entropy[chosen].max() <= entropy[left].min()
        assert float(entropy.float()[chosen].sum()) > bound - 1e-4  # one more would break the bound


@given(SLOTS, st.floats(0, 6))
def test_confident_slots_are_masked_and_at_least_one(slots, threshold):
    confidence, masked = (torch.tensor(column) for column in zip(*slots, strict=True))
    chosen = choose_confident(confidence.float(), masked, threshold)
    assert not (chosen & ~masked).any()
    assert chosen.any() == masked.any()
    assert bool(chosen[masked & (confidence.float() >= threshold)].all())


def test_a_cancelled_request_raises_before_any_step(engine):
    request = FillRequest(near=NEAR, suffix=SUFFIX)
    request.cancel.set()
    steps = count_steps(engine)
    with pytest.raises(Cancelled):
        engine.fill(request)
    assert steps() == 0


def count_steps(engine, after=None, action=None):
    """How often the loop asks for a step from now on; `action` is done in step `after`."""
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


def test_a_deadline_that_is_over_gives_an_empty_fill(engine):
    fill = engine.fill(FillRequest(near=NEAR, suffix=SUFFIX, deadline_ms=0))
    assert (fill.text, fill.steps, fill.trace) == ("", 0, ())


def test_slots_are_settled_from_the_left_and_never_changed(engine):
    fill = engine.fill(FillRequest(near=NEAR, suffix=SUFFIX, max_slots=12, multiline=True))
    before: list[str] = []
    assert fill.steps == len(fill.trace) > 0
    for canvas in fill.trace:
        states = [slot.state for slot in canvas]
        settled = [slot.text for slot in canvas if slot.state == "committed"]
        assert states[: len(settled)] == ["committed"] * len(settled)
        assert settled[: len(before)] == before
        assert len(settled) > len(before) or canvas is fill.trace[-1]
        before = settled
