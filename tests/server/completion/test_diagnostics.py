"""Errors that say where the next edit is: those that appeared after a change, until the user leaves them alone."""

import pytest

from mercury_lsp.completion.next_edits.diagnostics import (
    MAX_CHANGES_SINCE,
    MAX_DIAGNOSTICS,
    REPORTS_REMEMBERED,
    Diagnostic,
    Diagnostics,
    Evidence,
)
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.places import broken_places
from mercury_lsp.documents.document import Document, Edit, Snapshot
from tests.support.document_edits import put

A, B = "file:///a.py", "file:///b.py"

LINES = "".join(f"a{number} = {number}\n" for number in range(60))


class Desk:
    """A user with two documents, and a server that checks them."""

    def __init__(self, text: str = LINES):
        self.documents = {uri: Document(uri, "python", 1, text) for uri in (A, B)}
        self.diagnostics = Diagnostics()

    def now(self, uri: str = A) -> Snapshot:
        return self.documents[uri].parsed()

    def reports(self, *lines: int, uri: str = A) -> "Desk":
        """The server reports errors at the starts of lines."""
        now = self.now(uri)
        starts = (now.offset_at(line, 0) for line in lines)
        self.diagnostics.report(now, [Diagnostic(start, start + 2) for start in starts])
        return self

    def edits(self, line: int, text: str = "x", uri: str = A, removed: int = 0) -> "Desk":
        """The user types at the start of a line, or instead of characters there."""
        before = self.now(uri)
        start = before.offset_at(line, 0)
        old = before.slice(start, start + removed)
        put(self.documents[uri], start, start + removed, text)
        self.diagnostics.edited(before, [Edit(start, old, text)])
        return self

    def sees(self, uri: str = A) -> Evidence:
        return self.diagnostics.evidence(self.now(uri))

    def errors(self, uri: str = A) -> set[int]:
        return {*self.sees(uri).errors}


def test_an_error_that_appears_after_a_change_is_evidence():
    assert Desk().reports().edits(3).reports(40).errors() == {40}


def test_what_was_there_before_the_change_is_none_although_its_line_moves():
    desk = Desk().reports(40).edits(3, "b = 1\nc = 2\n").reports(42, 50)
    assert desk.errors() == {50}


def test_without_a_report_before_the_change_nothing_is_known_to_be_new():
    desk = Desk().edits(3).reports(40)
    assert desk.errors() == set()
    assert desk.reports(40, 50).errors() == set()
    assert desk.edits(20).reports(40, 50, 55).errors() == {55}


def test_without_a_change_nothing_is_evidence():
    assert Desk().reports().reports(40).errors() == set()


def test_a_document_opened_after_the_change_brings_no_evidence():
    desk = Desk().reports().edits(3).reports(uri=B).reports(7, uri=B)
    assert desk.errors(B) == set()


def test_an_error_in_another_document_is_evidence():
    desk = Desk().reports().reports(uri=B).edits(3).reports(7, uri=B)
    assert (desk.errors(A), desk.errors(B)) == (set(), {7})


def test_evidence_moves_with_the_text_and_is_current_only_once_it_is_reported_again():
    desk = Desk().reports().edits(3).reports(40)
    assert desk.sees().is_current
    desk.edits(4, "b = 1\n")
    assert (desk.errors(), desk.sees().is_current) == ({41}, False)
    desk.reports(41)
    assert (desk.errors(), desk.sees().is_current) == ({41}, True)


def test_an_error_that_went_is_no_evidence_and_is_new_if_it_comes_back():
    desk = Desk().reports().edits(3).reports(40).reports()
    assert desk.errors() == set()
    for line in range(10, 10 + 4 * MAX_CHANGES_SINCE, 4):
        desk.edits(line).reports()
    assert desk.reports(40).errors() == {40}


def test_one_report_with_the_ranges_of_an_older_text_makes_no_old_error_new():
    desk = Desk().reports(30, 40).edits(3, "b = 1\n")
    desk.reports(30, 40)  # the lines of the text before
    assert desk.reports(31, 41).errors() == set()


def test_an_old_error_that_was_away_for_many_reports_is_new():
    desk = Desk().reports(40).edits(3)
    for _ in range(REPORTS_REMEMBERED):
        desk.reports()
    assert desk.reports(40).errors() == {40}


def test_an_error_left_alone_over_several_changes_says_nothing_more():
    desk = Desk().reports().edits(3).reports(40)
    for number in range(1, MAX_CHANGES_SINCE):
        assert desk.edits(3 + 3 * number).reports(40).errors() == {40}
    assert desk.edits(3 + 3 * MAX_CHANGES_SINCE).reports(40).errors() == set()


def test_one_who_goes_from_error_to_error_keeps_those_that_are_left():
    broken = [*range(20, 20 + 3 * 2 * MAX_CHANGES_SINCE, 3)]
    desk = Desk().reports().edits(3).reports(*broken)
    while len(broken) > 1:
        desk.edits(broken.pop(0)).reports(*broken)
    assert desk.errors() == {*broken}


def test_keys_in_neighbouring_lines_are_one_change():
    desk = Desk().reports().edits(3).reports(40)
    for _ in range(3 * MAX_CHANGES_SINCE):
        desk.edits(4).edits(3)
    assert desk.errors() == {40}


def test_of_many_errors_the_first_are_kept():
    desk = Desk("a = 1\n" * 3 * MAX_DIAGNOSTICS).reports().edits(3)
    assert desk.reports(*range(5, 5 + 2 * MAX_DIAGNOSTICS)).errors() == {*range(5, 5 + MAX_DIAGNOSTICS)}


def test_a_closed_document_is_forgotten():
    desk = Desk().reports().edits(3).reports(40)
    desk.diagnostics.forget(A)
    assert desk.sees() == Evidence()
    assert desk.reports(40).errors() == set()


# Places


CHANGED = Hunk(A, "a.py", "python", 20, "x = 1\n", "x = 2\n")


def lines(desk: Desk, *hunks: Hunk) -> list[tuple[str, int]]:
    documents = [(desk.now(B), "b.py"), (desk.now(A), "a.py")]
    found = broken_places(documents, hunks, desk.diagnostics.evidence)
    return [(each.path, each.line) for each in found]


def test_places_come_below_the_change_first_and_in_its_document_first():
    desk = Desk().reports().reports(uri=B).edits(20).reports(5, 12, 30, 50).reports(1, uri=B)
    assert lines(desk, CHANGED) == [("a.py", 30), ("a.py", 50), ("a.py", 12), ("a.py", 5), ("b.py", 1)]


def test_lines_that_the_user_changed_are_no_places():
    desk = Desk().reports().edits(20).reports(20, 30, 40)
    assert lines(desk, Hunk(A, "a.py", "python", 30, "", "a30 = 30\n"), CHANGED) == [("a.py", 40)]


@pytest.mark.parametrize("broken", ["a40 = (40\n", "def f(:\n"])
def test_lines_that_do_not_parse_are_no_places(broken: str):
    desk = Desk(LINES.replace("a40 = 40\n", broken)).reports().edits(20).reports(30, 40)
    assert lines(desk, CHANGED) == [("a.py", 30)]
