"""Where the editor's own language server sees a name, a renaming goes on, in the real server."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.server.protocol.test_next_edits import ACTIONS, ANSWERS, BODY, SILENT, edits, run_all
from tests.support.editor import Editor, script, span

METHOD = "mercury/didChangeHighlights"

READ, WRITE = 2, 3

At = tuple[int, int]


@pytest.fixture(scope="module")
def shared() -> Iterator[Editor]:
    with Editor(ANSWERS) as made:
        yield made.initialize(ACTIONS)


@pytest.fixture
def editor(shared: Editor) -> Editor:
    return shared.quiet()


def highlight(
    editor: Editor, uri: str, version: int, places: Sequence[At], written: Sequence[At], width: int = 5
) -> None:
    found = [
        {"range": span((line, column), (line, column + width)), "kind": WRITE if (line, column) in written else READ}
        for line, column in places
    ]
    editor.notify(METHOD, {"textDocument": {"uri": uri, "version": version}, "highlights": found})


def opened(editor: Editor, body: str = BODY, language: str = "python") -> str:
    return editor.opened(script(**SILENT) + body, language=language)


def rename(editor: Editor, uri: str, version: int, at: At) -> None:
    line, column = at
    editor.change(uri, version, {"range": span((line, column), (line, column + 5)), "text": "total"})


def offered(editor: Editor, uri: str, version: int, at: At) -> list[At]:
    """The places that are offered one after the other, each accepted."""
    taken: list[At] = []
    line, column = at
    while found := edits(editor, uri, version, line, column + 5):
        [edit], version = found, version + 1
        start = edit["range"]["start"]
        line, column = start["line"], start["character"]
        taken.append((line, column))
        editor.change(uri, version, {"range": edit["range"], "text": edit["text"]})
    return taken


PARAMETER, USE, MEMBER, RETURNED = (1, 6), (2, 8), (3, 12), (4, 11)
"""Where `count` stands in `BODY`."""


def test_the_server_says_that_it_takes_highlights(editor: Editor):
    assert editor.capabilities["experimental"]["mercury"]["highlights"] is True


def test_a_renaming_goes_on_where_the_other_server_sees_the_name_and_nowhere_else(editor: Editor):
    uri = opened(editor)
    highlight(editor, uri, 1, [PARAMETER, USE, MEMBER], [PARAMETER])
    rename(editor, uri, 2, PARAMETER)
    assert offered(editor, uri, 2, PARAMETER) == [USE, MEMBER]


def test_a_name_changed_where_it_is_only_used_is_renamed_from_the_second_place_on(editor: Editor):
    uri = opened(editor)
    highlight(editor, uri, 1, [PARAMETER, USE, RETURNED], [PARAMETER])
    rename(editor, uri, 2, USE)
    assert offered(editor, uri, 2, USE) == []
    rename(editor, uri, 3, PARAMETER)
    assert offered(editor, uri, 3, PARAMETER) == [RETURNED]


def test_a_renaming_works_in_a_language_without_a_grammar(editor: Editor):
    uri = opened(editor, "let count be 1\nshow count\nshow recount\n", language="unheard-of")
    highlight(editor, uri, 1, [(1, 4), (2, 5)], [(1, 4)])
    rename(editor, uri, 2, (1, 4))
    assert offered(editor, uri, 2, (1, 4)) == [(2, 5)]


def test_highlights_under_way_do_not_replace_those_from_before_the_renaming(editor: Editor):
    uri = opened(editor)
    highlight(editor, uri, 1, [PARAMETER, USE, RETURNED], [PARAMETER])
    rename(editor, uri, 2, PARAMETER)
    assert edits(editor, uri, 2)
    highlight(editor, uri, 2, [PARAMETER], [PARAMETER])
    highlight(editor, uri, 2, [RETURNED], [])
    highlight(editor, uri, 2, [PARAMETER, USE], [])
    highlight(editor, uri, 2, [], [])
    assert offered(editor, uri, 2, PARAMETER) == [USE, RETURNED]


def test_highlights_move_with_the_text(editor: Editor):
    uri = opened(editor)
    highlight(editor, uri, 1, [PARAMETER, USE, MEMBER], [PARAMETER])
    editor.change(uri, 2, {"range": span((1, 0), (1, 0)), "text": "# a note\n"})
    rename(editor, uri, 3, (2, 6))
    assert offered(editor, uri, 3, (2, 6)) == [(3, 8), (4, 12)]


@pytest.mark.parametrize(
    ("version", "places", "width"),
    [(0, [PARAMETER, MEMBER], 5), (1, [PARAMETER, (2, 4)], 5), (1, [PARAMETER, MEMBER], 4)],
    ids=["of an older version", "of several texts", "of another name"],
)
def test_highlights_that_do_not_fit_leave_the_renaming_to_the_rules(
    editor: Editor, version: int, places: Any, width: int
):
    uri = opened(editor)
    highlight(editor, uri, version, places, [PARAMETER], width)
    rename(editor, uri, 2, PARAMETER)
    assert offered(editor, uri, 2, PARAMETER) == [USE, RETURNED]


def test_all_places_that_the_other_server_sees_are_renamed_at_once(editor: Editor):
    uri = opened(editor)
    highlight(editor, uri, 1, [PARAMETER, USE, MEMBER, RETURNED], [PARAMETER])
    rename(editor, uri, 2, PARAMETER)
    assert editor.result(run_all(editor, uri, 2)) == {"applied": True, "edits": 3, "documents": 1, "remaining": 0}


def test_highlights_of_a_document_that_is_not_open_are_dropped(editor: Editor):
    highlight(editor, "file:///nowhere.py", 1, [PARAMETER], [PARAMETER])
    assert editor.request("mercury/status", {})
