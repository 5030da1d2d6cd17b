"""The client's reports override what the edits show; and the observer keeps its limits whatever happens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.statistics_desk import TEXT, URI, Desk, result


@pytest.fixture
def desk() -> Desk:
    return Desk()


# Reports


def test_a_reported_acceptance_is_not_counted_twice(desk: Desk):
    desk.show(TEXT, name="one")
    desk.insert(TEXT)
    desk.observer.reported_accepted("one")
    assert result(desk.close()) == ("accepted", 8)


def test_an_acceptance_may_be_reported_before_its_edit(desk: Desk):
    desk.show(TEXT, name="one")
    desk.observer.reported_accepted("one")
    desk.insert(TEXT)
    assert result(desk.close()) == ("accepted", 8)


def test_a_reported_rejection_counts(desk: Desk):
    desk.show(TEXT, name="one")
    desk.observer.reported_rejected("one")
    assert desk.close().outcome == "rejected"


def test_if_the_client_reports_what_it_shows_anything_else_was_not_seen(desk: Desk):
    desk.show(TEXT, name="one")
    desk.observer.reported_shown("one")
    desk.type("x")
    desk.show(TEXT, name="two")
    desk.type("x")
    desk.show(TEXT)
    desk.insert(TEXT)
    desk.observer.close()
    assert [each.outcome for each in desk.records] == ["rejected", "accepted"]


# Limits


EDITS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 6), st.sampled_from(["", "v", "va", "lue", "value(1)", "\r\n", "𝒳 "])),
    min_size=1,
    max_size=3,
)
STEPS = st.one_of(EDITS, st.sampled_from(["show", "rest", "reported", "part", "no", "here"]))


@given(st.lists(STEPS, max_size=25))
def test_whatever_happens_the_figures_add_up_and_spans_are_tracked(steps: list):
    desk = Desk("x = 1\ny = 𝒳\r\nz = ")
    desk.show(TEXT, "value", name="one", at=4)
    for step in steps:
        if isinstance(step, str):
            happen(desk, step)
        else:
            starts = [min(start, len(desk.text)) for start, _, _ in step]
            edits = [desk.edit(at, removed, new) for at, (_, removed, new) in zip(starts, step, strict=True)]
            desk.observer.edited(URI, edits)
        check_spans(desk)
    desk.observer.close()
    for record in desk.records:
        assert 0 <= record.saved <= record.length
        assert record.saved == 0 or record.outcome in ("accepted", "partly")


def happen(desk: Desk, step: str) -> None:
    match step:
        case "show":
            desk.show(TEXT, at=len(desk.text) // 2)
        case "rest" if "value" in desk.text:
            desk.show("(1)", name="one", at=desk.text.index("value") + 5)
        case "reported" | "part":
            desk.observer.reported_accepted("one", in_part=step == "part")
        case "no":
            desk.observer.reported_rejected("one")
        case "here":
            desk.insert(TEXT, at=len(desk.text) // 2)


def check_spans(desk: Desk) -> None:
    for state in desk.observer._documents.values():
        for impression in filter(None, [state.requested, state.shown]):
            assert desk.text[impression._start : impression.end] == impression._text
