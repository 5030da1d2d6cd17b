"""Where the next edit probably is, in a real workbench of VS Code: pointed to, gone to or dismissed by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.browser import CTRL
from tests.support.vscode import Open, Window, head, tapped

SILENT = {"confidence": 0.1}
"""No ghost text is worth showing."""

ASKED = "mercury/nextPlace"

LINES = 60

FIRST = "x = 1"
"""What the user types in the second line, from which no edit follows."""

SAVED_LATE = {"files.autoSaveDelay": 3_000}
"""The file is saved long after a place would have been asked for, so that one can wait for that."""

HINT = "↓ line 42 · Tab to jump"


def body(first: str = "", far: str = "a40 = 40") -> str:
    """Lines of a file, of which the 42nd, with the head, is `far`."""
    lines = [first, *(f"a{n} = {n}" for n in range(1, LINES))]
    return "\n".join([*lines[:40], far, *lines[41:]]) + "\n"


def edited(
    window: Open, folder: Path, place: str = "41", fill: dict[str, Any] = SILENT, settings: dict[str, Any] | None = None
) -> Window:
    """A window in which a line has just been written; `place` is where the next edit probably is."""
    command = [*tapped(folder / "0" / "a.py"), "--place", place]
    given = {"editor.wordBasedSuggestions": "off", "mercury.command": command} | (settings or {})
    vscode = window(fill, body(), given).is_ready()
    if ":" in place:
        visit(vscode, place.partition(":")[0])
        visit(vscode, "a.py")
    for key, modifiers in (("Home", CTRL), ("ArrowDown", 0)):
        vscode.page.press(key, modifiers)
    vscode.page.type(FIRST)
    return vscode


def visit(vscode: Window, name: str) -> None:
    vscode.page.press("p", CTRL)
    vscode.page.type(name)
    vscode.waits(lambda: name in vscode.rows())
    vscode.page.press("Enter")
    vscode.waits(lambda: any(name in text for text in vscode.page.texts(".tab.active")))


def points(vscode: Window, hint: str = HINT) -> None:
    """A place is pointed to, and nothing else is drawn."""
    vscode.waits(lambda: (now := vscode.drawn()).hints == [hint] and (now.added, now.arrows) == ([], 1))


def is_at(vscode: Window, place: str) -> None:
    """The status bar names the cursor's place."""
    vscode.waits(lambda: place in vscode.page.texts("[id='status.editor.selection'] a"))


def edits_asked(vscode: Window) -> set[tuple[int, int]]:
    """The versions and lines for which a next edit was asked."""
    asked = vscode.calls("textDocument/copilotInlineEdit")
    return {(each["textDocument"]["version"], each["position"]["line"]) for each in asked}


def test_tab_goes_to_the_place_that_the_line_of_the_cursor_points_to(window: Open, tmp_path: Path) -> None:
    vscode = edited(window, tmp_path)
    points(vscode)
    vscode.page.press("Tab")
    is_at(vscode, "Ln 42, Col 1")
    vscode.draws_nothing()
    vscode.page.type("b")
    vscode.reads(head(SILENT) + body(FIRST, "ba40 = 40"))


def test_after_a_dismissal_no_place_is_asked_for_until_text_changes(window: Open, tmp_path: Path) -> None:
    vscode = edited(window, tmp_path, settings=SAVED_LATE)
    points(vscode)
    vscode.page.press("Escape")
    vscode.draws_nothing()
    asked = len(vscode.calls(ASKED))
    version = max(edits_asked(vscode))[0]
    vscode.page.press("ArrowDown")
    vscode.waits(lambda: (version, 2) in edits_asked(vscode))
    vscode.page.press("End")
    vscode.reads(head(SILENT) + body(FIRST))
    assert len(vscode.calls(ASKED)) == asked
    vscode.page.type("0")
    points(vscode)
    assert len(vscode.calls(ASKED)) == asked + 1


def test_a_place_is_shown_only_while_the_cursor_stays(window: Open, tmp_path: Path) -> None:
    vscode = edited(window, tmp_path)
    points(vscode)
    vscode.page.press("ArrowDown")
    vscode.page.press("Home")
    points(vscode, "↓ line 42")
    at = vscode.calls(ASKED)[-1]["position"]
    assert at == {"line": 2, "character": 0}
    vscode.page.press("Tab")
    vscode.reads(head(SILENT) + body(FIRST).replace("a1 = 1\n", "    a1 = 1\n", 1))


def test_tab_goes_to_a_place_in_another_open_file(window: Open, tmp_path: Path) -> None:
    other = tmp_path / "0" / "b.py"
    other.parent.mkdir()
    lines = [f"c{n} = {n}\n" for n in range(20)]
    other.write_text("".join(lines))
    vscode = edited(window, tmp_path, "b.py:11")
    points(vscode, "→ b.py, line 12 · Tab to jump")
    vscode.page.press("Tab")
    is_at(vscode, "Ln 12, Col 1")
    vscode.draws_nothing()
    vscode.page.type("d")
    vscode.waits(lambda: other.read_text() == "".join([*lines[:11], "dc11 = 11\n", *lines[12:]]))


def test_no_place_is_pointed_to_beside_ghost_text(window: Open, tmp_path: Path) -> None:
    vscode = edited(window, tmp_path, fill={"text": " + 2"})
    vscode.shows(" + 2")
    vscode.waits(lambda: vscode.calls(ASKED))
    asked = len(vscode.calls(ASKED))
    vscode.page.press("Escape")
    vscode.shows("")
    assert vscode.drawn().hints == []
    vscode.page.press("ArrowLeft")
    points(vscode)
    assert len(vscode.calls(ASKED)) == asked + 1


def test_places_can_be_switched_off_alone_and_go_with_next_edits(window: Open, tmp_path: Path) -> None:
    vscode = edited(window, tmp_path, settings=SAVED_LATE)
    points(vscode)
    for name, line in (("nextPlaces", f"{FIRST}0"), ("nextEdits", f"{FIRST}00")):
        vscode.configure({f"mercury.{name}": False})
        vscode.draws_nothing()
        asked = len(vscode.calls(ASKED))
        vscode.page.type("0")
        vscode.reads(head(SILENT) + body(line))
        assert len(vscode.calls(ASKED)) == asked
        vscode.configure({})
        points(vscode)
