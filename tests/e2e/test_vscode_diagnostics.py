"""Errors that another extension reports, in a real workbench of VS Code: forwarded, and gone to by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.test_vscode_next_places import FIRST, SILENT, body, is_at, points
from tests.support.browser import CTRL
from tests.support.vscode import STATUS, Open, Window, head, tapped

FORWARDED = "mercury/didChangeDiagnostics"

BROKEN = "a40 = 40  # without x"
"""In the 42nd line; an error once `x` is assigned in the second."""


def checked(window: Open, folder: Path, settings: dict[str, Any] | None = None) -> Window:
    """A window on a file that the other extension has found no error in, and in which nothing is a likely place."""
    command = [*tapped(folder / "0" / "a.py"), "--place", "1"]
    given = {"editor.wordBasedSuggestions": "off", "mercury.command": command} | (settings or {})
    return window(SILENT, body(far=BROKEN), given).is_ready()


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


def test_tab_goes_to_an_error_that_appeared_after_the_last_change_and_the_menu_looks_on(
    window: Open, tmp_path: Path
) -> None:
    vscode = checked(window, tmp_path)
    vscode.waits(lambda: errors(vscode) == [[]])
    assign(vscode)
    points(vscode)
    [first, *_, last] = vscode.calls(FORWARDED)
    assert first["textDocument"]["version"] < last["textDocument"]["version"]
    end = {"line": 41, "character": len(BROKEN)}
    assert last["diagnostics"] == [{"range": {"start": {"line": 41, "character": 0}, "end": end}, "severity": 1}]
    vscode.page.press("Tab")
    is_at(vscode, "Ln 42, Col 1")
    vscode.reads(head(SILENT) + body(FIRST, BROKEN))
    vscode.run("Mercury: Show Menu")
    vscode.waits(lambda: "Look for a next edit" in vscode.rows())


def test_the_menu_goes_to_the_place_that_is_pointed_to(window: Open, tmp_path: Path) -> None:
    vscode = checked(window, tmp_path)
    vscode.waits(lambda: errors(vscode) == [[]])
    assign(vscode)
    points(vscode)
    vscode.page.click(STATUS)
    label = "Go to the likely next place, line 42"
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
