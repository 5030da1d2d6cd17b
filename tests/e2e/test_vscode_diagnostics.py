"""Errors that another extension reports, in a real workbench of VS Code: forwarded, and gone to by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.browser import CTRL
from tests.support.vscode import STATUS, Open, Window, head, tapped

FORWARDED = "mercury/didChangeDiagnostics"

SILENT = {"confidence": 0.1}
"""No ghost text is worth showing."""

FIRST = "x = 1"
"""What the user types in the second line, from which no edit follows."""

BROKEN = "a40 = 40  # without x"
"""In the 42nd line; an error once `x` is assigned in the second."""


def body(first: str = "", far: str = BROKEN) -> str:
    """Lines of a file, of which the 42nd, with the head, is `far`."""
    lines = [first, *(f"a{n} = {n}" for n in range(1, 60))]
    return "\n".join([*lines[:40], far, *lines[41:]]) + "\n"


def is_at(vscode: Window, place: str) -> None:
    """The status bar names the cursor's place."""
    vscode.waits(lambda: place in vscode.page.texts("[id='status.editor.selection'] a"))


def checked(window: Open, folder: Path, settings: dict[str, Any] | None = None) -> Window:
    """A window on a file that the other extension has found no error in."""
    given = {"editor.wordBasedSuggestions": "off", "mercury.command": tapped(folder / "0" / "a.py")} | (settings or {})
    return window(SILENT, body(), given).is_ready()


def assign(vscode: Window) -> None:
    for key, modifiers in (("Home", CTRL), ("ArrowDown", 0)):
        vscode.page.press(key, modifiers)
    vscode.page.type(FIRST)


def is_in_editor(vscode: Window) -> None:
    """The keys go to the editor again."""
    vscode.waits(lambda: vscode.page.evaluate("!!document.activeElement.closest('.editor-instance')"))


def errors(vscode: Window) -> list[list[int]]:
    """The lines of errors in each report."""
    return [[each["range"]["start"]["line"] for each in sent["diagnostics"]] for sent in vscode.calls(FORWARDED)]


def test_the_menu_leads_to_an_error_that_appeared_after_the_last_change(window: Open, tmp_path: Path) -> None:
    vscode = checked(window, tmp_path)
    vscode.waits(lambda: errors(vscode) == [[]])
    assign(vscode)
    vscode.waits(lambda: errors(vscode)[-1] == [41])
    [first, *_, last] = vscode.calls(FORWARDED)
    assert first["textDocument"]["version"] < last["textDocument"]["version"]
    end = {"line": 41, "character": len(BROKEN)}
    assert last["diagnostics"] == [{"range": {"start": {"line": 41, "character": 0}, "end": end}, "severity": 1}]
    vscode.page.click(STATUS)
    label = "Look for a next edit"
    vscode.waits(lambda: label in vscode.rows())
    for _ in range(vscode.rows().index(label)):
        vscode.page.press("ArrowDown")
    vscode.page.press("Enter")
    is_at(vscode, "Ln 42, Col 1")
    vscode.page.type("b")
    vscode.reads(head(SILENT) + body(FIRST, f"b{BROKEN}"))


def test_nothing_is_forwarded_while_next_edits_are_off(window: Open, tmp_path: Path) -> None:
    vscode = checked(window, tmp_path, {"mercury.nextEdits": False})
    assign(vscode)
    vscode.waits(lambda: any("1" in text for text in vscode.page.texts("[id='status.problems'] a")))
    assert errors(vscode) == []
    vscode.run("Mercury: Switch Next Edits On or Off")
    is_in_editor(vscode)
    vscode.page.type("0")
    vscode.waits(lambda: errors(vscode) == [[41]])
