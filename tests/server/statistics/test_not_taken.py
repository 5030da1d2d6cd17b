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


def test_inserting_something_else_is_a_rejection(desk: Desk):
    desk.show(TEXT)
    desk.insert("values = 3")
    assert desk.close().outcome == "rejected"


def test_deleting_what_stands_before_it_is_a_rejection(desk: Desk):
    desk.show(TEXT)
    desk.change(3, 1, "")
    assert desk.close().outcome == "rejected"


def test_a_request_elsewhere_means_that_the_user_moved_away(desk: Desk):
    desk.show(TEXT)
    desk.observer.requested(URI, 0, "python", True)
    assert desk.close().outcome == "rejected"


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


def test_an_acceptance_counts_only_for_the_last_impression(desk: Desk):
    desk.show(TEXT)
    desk.show(TEXT, automatic=False)
    desk.insert(TEXT)
    desk.observer.close()
    assert sorted((each.outcome, each.saved) for each in desk.records) == [("accepted", 8), ("ignored", 0)]


def test_more_alternatives_on_display_belong_to_the_same_impression(desk: Desk):
    desk.show(TEXT, name="one")
    desk.type("va")
    request = desk.observer.requested(URI, 6, "python", False)
    desk.observer.answered(request, [desk.suggestion("lue(1)", "one"), desk.suggestion("rious", "two")])
    desk.insert("rious")
    assert result(desk.close()) == ("accepted", 5)


def test_requests_of_two_features_at_one_place_count_once(desk: Desk):
    requests = [desk.observer.requested(URI, 4, "python", True) for _ in range(2)]
    for request in requests:
        desk.observer.answered(request, [desk.suggestion(TEXT, name="one")])
    desk.insert(TEXT)
    assert result(desk.close()) == ("accepted", 8)


def test_one_features_answer_counts_even_if_the_others_never_comes(desk: Desk):
    request, _ = [desk.observer.requested(URI, 4, "python", True) for _ in range(2)]
    desk.observer.answered(request, [desk.suggestion(TEXT)])
    desk.insert(TEXT)
    assert result(desk.close()) == ("accepted", 8)


def test_an_answer_too_late_to_be_seen_does_not_count(desk: Desk):
    request = desk.observer.requested(URI, 4, "python", True)
    desk.type("x")
    desk.observer.answered(request, [desk.suggestion(TEXT)])
    desk.observer.close()
    assert desk.records == []


def test_text_typed_while_the_model_works_is_neither_typed_nor_saved(desk: Desk):
    request = desk.observer.requested(URI, 4, "python", True)
    desk.type("va")
    desk.observer.answered(request, [desk.suggestion(TEXT)])
    desk.insert("lue(1)")
    assert result(desk.close()) == ("accepted", 6)


def test_the_answer_of_a_superseded_request_does_not_count(desk: Desk):
    older = desk.observer.requested(URI, 4, "python", True)
    desk.observer.requested(URI, 2, "python", True)
    desk.observer.answered(older, [desk.suggestion(TEXT)])
    desk.observer.close()
    assert desk.records == []


def test_a_suggestion_hidden_by_a_popup_does_not_count(desk: Desk):
    desk.show(TEXT)
    desk.observer.retract(URI)
    desk.observer.close()
    assert desk.records == []
