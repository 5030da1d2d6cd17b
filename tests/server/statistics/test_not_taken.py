"""Suggestions rejected, ignored or never seen."""

import pytest

from tests.support.statistics_desk import TEXT, URI, Desk, result


@pytest.fixture
def desk() -> Desk:
    return Desk()


# Rejected and ignored


def test_typing_something_else_is_a_rejection(desk: Desk):
    desk.show(TEXT)
    desk.type("vx")
    assert result(desk.close()) == ("rejected", 0)


def test_a_suggestion_untouched_until_its_document_is_closed_was_ignored(desk: Desk):
    desk.show(TEXT)
    desk.observer.closed(URI)
    assert desk.close().outcome == "ignored"


def test_another_suggestion_at_the_same_place_supersedes_it(desk: Desk):
    desk.show(TEXT)
    desk.show("other")
    desk.insert("other")
    desk.observer.close()
    assert sorted(each.outcome for each in desk.records) == ["accepted", "ignored"]


def test_an_answer_too_late_to_be_seen_does_not_count(desk: Desk):
    request = desk.observer.requested(URI, 4, "python", True)
    desk.type("x")
    desk.observer.answered(request, [desk.suggestion(TEXT)])
    desk.observer.close()
    assert desk.records == []


def test_a_suggestion_hidden_by_a_popup_does_not_count(desk: Desk):
    desk.show(TEXT)
    desk.observer.retract(URI)
    desk.observer.close()
    assert desk.records == []
