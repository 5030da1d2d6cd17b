"""Errors that say where the next edit is: those that appeared after a change."""

import pytest

from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.places import Diagnostics, broken_places
from mercury_lsp.documents.document import Document, Snapshot
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
        self.diagnostics.report(now, (now.offset_at(line, 0) for line in lines))
        return self

    def edits(self, line: int, text: str = "x", uri: str = A) -> "Desk":
        """The user types at the start of a line."""
        start = self.now(uri).offset_at(line, 0)
        put(self.documents[uri], start, start, text)
        self.diagnostics.edited()
        return self

    def errors(self, uri: str = A) -> set[int]:
        return {*self.diagnostics.errors(self.now(uri))}


def test_an_error_that_appears_after_a_change_is_evidence():
    assert Desk().reports().edits(3).reports(40).errors() == {40}


def test_what_was_there_before_the_change_is_none_although_its_line_moves():
    desk = Desk().reports(40).edits(3, "b = 1\nc = 2\n").reports(42, 50)
    assert desk.errors() == {50}


def test_an_error_of_an_older_text_is_none_until_it_is_reported_again():
    desk = Desk().reports().edits(3).reports(40)
    assert desk.edits(4, "b = 1\n").errors() == set()
    assert desk.reports(41).errors() == {41}


def test_an_error_that_went_is_none_and_one_again_if_it_comes_back():
    desk = Desk().reports().edits(3).reports(40).reports()
    assert desk.errors() == set()
    assert desk.reports(40).errors() == {40}


# Places


CHANGED = Hunk(A, "a.py", "python", 20, "x = 1\n", "x = 2\n")


def lines(desk: Desk, *hunks: Hunk) -> list[tuple[str, int]]:
    documents = [(desk.now(B), "b.py"), (desk.now(A), "a.py")]
    found = broken_places(documents, hunks, desk.diagnostics.errors)
    return [(each.path, each.line) for each in found]


@pytest.mark.parametrize("broken", ["a40 = (40\n", "def f(:\n"])
def test_lines_that_do_not_parse_are_no_places(broken: str):
    desk = Desk(LINES.replace("a40 = 40\n", broken)).reports().edits(20).reports(30, 40)
    assert lines(desk, CHANGED) == [("a.py", 30)]
