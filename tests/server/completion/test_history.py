"""The history of the user's edits: hunks of whole lines across files, and what is no edit of the user's."""

from pathlib import Path
from textwrap import dedent

from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from mercury_lsp.completion.next_edits.history import (
    RELOAD_SECONDS,
    SAVE_REPORT_SECONDS,
    History,
    Hunk,
    shown,
)
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.documents.roots import Roots

A, B = "file:///work/a.py", "file:///work/b.py"

TEXT = """\
    def f(count):
        x = count + 1
        y = x
        z = y
        return count
"""


class HistoryDesk:
    """A user who edits documents, and the history of it."""

    def __init__(self, **texts: str):
        self.documents, self.seconds = OpenDocuments(), 0.0
        self.documents.roots = Roots([Path("/work")])
        self.history = History(self.documents, lambda: self.seconds)
        for name, text in (texts or {"a": TEXT, "b": TEXT}).items():
            self.open(f"file:///work/{name}.py", dedent(text))

    def open(self, uri: str, text: str) -> None:
        self.documents.open(types.TextDocumentItem(uri, "python", 1, text))
        self.history.opened(uri)

    def close(self, uri: str) -> str:
        text = self.text(uri)
        self.history.closed(uri)
        self.documents.close(uri)
        return text

    def text(self, uri: str = A) -> str:
        return self.documents.snapshot(uri).text

    def put(self, *edits: tuple[int, str, str], uri: str = A) -> "HistoryDesk":
        """One notification with these edits: offset, removed and inserted text."""
        changes = []
        for start, removed, inserted in edits:
            snapshot = self.documents.snapshot(uri)
            span = (types.Position(*snapshot.position_at(at)) for at in (start, start + len(removed)))
            change = types.TextDocumentContentChangePartial(types.Range(*span), inserted)
            changes += self.documents.change(uri, 1, [change])
        self.history.record(uri, changes)
        return self

    def replace(self, old: str, new: str, uri: str = A) -> "HistoryDesk":
        return self.put((self.text(uri).index(old), old, new), uri=uri)

    def type(self, at: int, text: str, uri: str = A) -> "HistoryDesk":
        for number, key in enumerate(text):
            self.put((at + number, "", key), uri=uri)
        return self

    def hunks(self) -> list[tuple[str, int, str, str]]:
        return [(each.path, each.line, each.before, each.after) for each in self.history.hunks()]


def test_keys_of_one_word_are_one_hunk_of_whole_lines():
    desk = HistoryDesk().type(HistoryDesk().text().index("count):"), "ac")
    assert desk.hunks() == [("a.py", 0, "def f(count):\n", "def f(account):\n")]


def test_changes_in_neighbouring_lines_are_one_hunk_and_others_are_not():
    desk = HistoryDesk().replace("x = ", "xs = ").replace("y = x", "y = xs")
    assert desk.hunks() == [("a.py", 1, "    x = count + 1\n    y = x\n", "    xs = count + 1\n    y = xs\n")]
    assert len(desk.replace("return count", "return 1").hunks()) == 2


def test_lines_inserted_or_removed_above_move_a_hunk():
    desk = HistoryDesk().replace("return count", "return 1").put((0, "", "import os\n\n\n"))
    assert [(line, before) for _, line, before, _ in desk.hunks()] == [(7, "    return count\n"), (0, "")]
    assert desk.hunks()[1][3] == "import os\n\n\n"


def test_an_edit_that_is_undone_is_forgotten():
    desk = HistoryDesk().replace("x = ", "xs = ").replace("z = ", "zs = ").replace("xs = ", "x = ")
    assert [line for _, line, *_ in desk.hunks()] == [3]
    assert desk.replace("zs = ", "z = ").hunks() == []


def test_white_space_alone_is_no_hunk():
    assert HistoryDesk().replace("x = count", "x  =  count").replace("    z", "        z").hunks() == []


# Other files


def test_hunks_survive_a_document_that_is_closed_and_opened_again():
    desk = HistoryDesk().replace("x = ", "xs = ")
    before = desk.hunks()
    text = desk.close(A)
    assert desk.hunks() == before
    desk.open(A, text)
    assert desk.hunks() == before
    assert desk.replace("xs = ", "xss = ").hunks()[0][3] == "    xss = count + 1\n"


def test_the_model_sees_paths_of_other_files_and_no_secrets():
    desk = HistoryDesk().replace("z = y", 'password = "hunter2-Zq8!kPx"').replace("x = ", "xs = ", uri=B)
    hunks = desk.history.hunks()
    own, other = shown(hunks, B)
    assert (own.path, own.removed, own.inserted) == ("a.py", "    z = y\n", "")
    assert (other.path, other.inserted) == (None, "    xs = count + 1\n")


# Tools


def test_a_formatted_document_sent_as_one_edit_is_a_formatters():
    text = "".join(f"a{n} = 'x{n}'\nb{n} = 1\n" for n in range(20))
    desk = HistoryDesk(a=text)
    assert desk.put((0, text, text.replace("'", '"'))).hunks() == []


def test_edits_of_a_file_that_is_reloaded_from_disk_are_not_the_users():
    desk = HistoryDesk().replace("x = count", "x = total")
    desk.history.files_changed([Path("/work/a.py")])
    assert desk.hunks() == []
    desk.seconds = RELOAD_SECONDS / 2
    assert desk.replace("return count", "return total").hunks() == []
    desk.seconds = 2 * RELOAD_SECONDS
    assert [line for _, line, *_ in desk.replace("y = x", "y = total").hunks()] == [2]


def test_a_report_of_a_file_that_the_client_saved_does_not_hide_what_the_user_does_next():
    desk = HistoryDesk().replace("x = count", "x = total")
    desk.history.saved(A)
    desk.seconds = RELOAD_SECONDS / 2
    desk.history.files_changed([Path("/work/a.py")])
    desk.replace("return count", "return total")
    assert [line for _, line, *_ in desk.hunks()] == [1, 4]
    desk.seconds = 2 * SAVE_REPORT_SECONDS
    desk.history.files_changed([Path("/work/a.py")])
    assert [line for _, line, *_ in desk.replace("y = x", "y = total").hunks()] == [1, 4]


# Truth

TEXTS = st.text("ab\n", max_size=15)


@given(TEXTS, st.lists(st.tuples(st.integers(0, 15), st.integers(0, 6), st.text("cd\n", max_size=4)), max_size=8))
def test_taking_all_hunks_back_gives_the_text_before_them(text, edits):
    desk = HistoryDesk(a="")
    desk.documents.open(types.TextDocumentItem(A, "plaintext", 1, text))
    for start, count, inserted in edits:
        now = desk.text()
        start = min(start, len(now))
        desk.put((start, now[start : start + count], inserted))
    assert "".join(without(desk.history.hunks(), desk.text()).split()) == "".join(text.split())


def without(hunks: list[Hunk], text: str) -> str:
    lines = text.splitlines(keepends=True)
    for hunk in sorted(hunks, key=lambda each: -each.line):
        assert "".join(lines[hunk.line : hunk.end_line]) == hunk.after
        lines[hunk.line : hunk.end_line] = hunk.before.splitlines(keepends=True)
    return "".join(lines)
