"""Where a user who asks by key is taken: to a new error, else to another use of a changed name, else nowhere."""

from mercury_lsp.completion.coalescing import Coalescer
from mercury_lsp.completion.next_edits.next_edits import NextEdits
from mercury_lsp.completion.next_edits.proposals import Question
from tests.server.completion.test_history import A, B, HistoryDesk

CODE = """\
import os


def load(path):
    with open(path) as file:
        return file.read()


class Store:
    size = 1

    def read(self, name):
        text = load(name)
        return text
"""
CALL = 12
"""The line that calls `load`."""


def found(desk: HistoryDesk, *errors: int, uris: tuple[str, ...] = (A,)) -> tuple[str, int] | None:
    first, *others = [(desk.documents.parsed(uri), desk.documents.path(uri)) for uri in uris]
    question = Question(*first, desk.history.hunks(), others=others, errors=lambda _: errors)
    place = NextEdits(Coalescer()).place(question)
    return None if place is None else (place.path, place.line)


def test_the_call_of_a_function_that_got_an_argument_is_the_place():
    assert found(HistoryDesk(a=CODE).replace("def load(path)", "def load(path, encoding)")) == ("a.py", CALL)


def test_a_line_in_which_an_error_appeared_goes_before():
    desk = HistoryDesk(a=CODE).replace("def load(path)", "def load(path, encoding)")
    assert found(desk, 9) == ("a.py", 9)
    assert found(desk, 3) == ("a.py", CALL)  # the user is still at work in the changed line


def test_a_name_that_is_gone_leads_to_its_other_uses_in_other_documents_too():
    desk = HistoryDesk(a=CODE[:90], b="from a import load\n\n\ndef f(x):\n    return load(x)\n")
    desk.replace("def load(path)", "def read(path)")
    assert found(desk) is None
    assert found(desk, uris=(A, B)) == ("b.py", 0)


def test_a_change_that_touches_no_name_elsewhere_leads_nowhere():
    assert found(HistoryDesk(a=CODE).replace("size = 1", "size = 2")) is None
    assert found(HistoryDesk(a=CODE)) is None


def test_the_cursor_goes_to_the_first_character_of_the_line_that_is_not_blank():
    desk = HistoryDesk(a=CODE).replace("def load(path)", "def load(path, encoding)")
    place = NextEdits(Coalescer()).place(Question(desk.documents.parsed(A), "a.py", desk.history.hunks()))
    assert place is not None and place.position == (CALL, 8)
