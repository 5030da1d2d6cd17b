"""Cells of notebooks, by LSP's synchronisation of notebooks and as documents alone."""

from typing import Any

import pytest

from tests.support.editor import Editor, script, span

TOTALS, SUMMARISE = "quarterly_totals = [1, 2]", "def summarise_quarters(frame, minimum_rows=10):\n    return frame"

CELLS = [("python", TOTALS), ("markdown", "# About quarters"), ("python", SUMMARISE), ("python", "print(quarterly_to")]

NOTEBOOK = "file:///work/sales.ipynb"


def cell_uri(number: int) -> str:
    """As VS Code writes them."""
    return f"vscode-notebook-cell:/work/sales.ipynb#{'WX'[number > 6]}{number if number < 7 else 10}sZmlsZQ=="


def item(number: int, language: str, text: str) -> dict[str, Any]:
    return {"uri": cell_uri(number), "languageId": language, "version": 1, "text": text}


def cell(number: int, language: str = "python") -> dict[str, Any]:
    return {"kind": 1 if language == "markdown" else 2, "document": cell_uri(number)}


def open_notebook(editor: Editor, cells: list[tuple[str, str]]) -> None:
    listed = [cell(number, language) for number, (language, _) in enumerate(cells)]
    document = {"uri": NOTEBOOK, "notebookType": "jupyter-notebook", "version": 1, "cells": listed}
    items = [item(number, *each) for number, each in enumerate(cells)]
    editor.notify("notebookDocument/didOpen", {"notebookDocument": document, "cellTextDocuments": items})


def open_cells(editor: Editor, cells: list[tuple[str, str]]) -> None:
    """One by one, the last first."""
    for number, (language, text) in reversed([*enumerate(cells)]):
        editor.open(cell_uri(number), text, language)


def change_notebook(editor: Editor, **cells: Any) -> None:
    document = {"uri": NOTEBOOK, "version": 2}
    editor.notify("notebookDocument/didChange", {"notebookDocument": document, "change": {"cells": cells}})


def given(editor: Editor, number: int, line: int, column: int) -> tuple[str, str]:
    """The text on both sides of a cursor in a cell, as the engine gets it."""
    editor.items(cell_uri(number), line, column)
    found = editor.request("test/given", {})
    return "".join((*found["far"], found["near"])), "".join(found["suffix"])


opening = pytest.mark.parametrize("opened", [open_notebook, open_cells], ids=["synchronised", "as documents"])


@opening
def test_cells_above_and_below_are_the_text_around_a_cell_and_markdown_is_left_out(opened: Any):
    with Editor() as editor:
        editor.initialize({"notebookDocument": {"synchronization": {}}})
        assert editor.capabilities["notebookDocumentSync"] == {"notebookSelector": [{"notebook": "*"}]}
        opened(editor, CELLS)
        assert given(editor, 3, 0, 18) == (f"{TOTALS}\n\n{SUMMARISE}\n\nprint(quarterly_to", "")
        assert given(editor, 0, 0, 25) == (TOTALS, f"\n\n{SUMMARISE}\n\nprint(quarterly_to")


@opening
def test_what_is_typed_in_a_cell_is_seen_in_the_others(opened: Any):
    with Editor() as editor:
        editor.initialize()
        opened(editor, CELLS)
        change = {"range": span((0, 0), (0, 9)), "text": "yearly"}
        if opened is open_notebook:
            content = {"document": {"uri": cell_uri(0), "version": 2}, "changes": [change]}
            change_notebook(editor, textContent=[content])
        else:
            editor.change(cell_uri(0), 2, change)
        assert given(editor, 3, 0, 18)[0].startswith("yearly_totals")


def test_cells_that_are_inserted_moved_and_deleted_are_read_in_their_new_order():
    with Editor() as editor:
        editor.initialize()
        open_notebook(editor, [("python", text) for text in ("a", "b", "c")])
        change_notebook(
            editor,
            structure={
                "array": {"start": 0, "deleteCount": 2, "cells": [cell(1), cell(9)]},
                "didOpen": [item(9, "python", "new")],
                "didClose": [{"uri": cell_uri(0)}],
            },
        )
        assert given(editor, 2, 0, 1) == ("b\n\nnew\n\nc", "")
        cells = [{"uri": cell_uri(number)} for number in (1, 9, 2)]
        editor.notify("notebookDocument/didClose", {"notebookDocument": {"uri": NOTEBOOK}, "cellTextDocuments": cells})
        assert [editor.text(cell_uri(number)) for number in (0, 1, 9, 2)] == [None] * 4


def test_secrets_of_other_cells_are_left_out():
    secret = 'AWS_SECRET_ACCESS_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYz8Kq0pLm4v"'
    with Editor() as editor:
        editor.initialize()
        open_notebook(editor, [("python", f"a = 1\n{secret}\n"), ("python", "b = "), ("python", secret)])
        above, below = given(editor, 1, 0, 4)
        assert above.startswith("a = 1\n") and "wJalr" not in above + below


@opening
def test_what_was_done_twice_in_a_cell_is_offered_in_another(opened: Any):
    texts = [script(confidence=0.1) + text for text in ("f(x.strict)\ng(x.strict)\n", "h(y.strict)\n\nk(z.strict)\n")]
    with Editor() as editor:
        editor.initialize({"experimental": {"mercury": {"editsElsewhere": True}}})
        opened(editor, [("python", text) for text in texts])
        for line in (1, 2):
            change = {"range": span((line, 4), (line, 10)), "text": "loose"}
            editor.change(cell_uri(0), line + 1, change)
        where = {"textDocument": {"uri": cell_uri(0), "version": 3}, "position": {"line": 2, "character": 9}}
        [edit] = editor.request("textDocument/copilotInlineEdit", where | {"context": {"triggerKind": 2}})["edits"]
        assert edit["textDocument"] == {"uri": cell_uri(1), "version": 1}
        assert (edit["range"], edit["text"]) == (span((1, 4), (1, 10)), "loose")
