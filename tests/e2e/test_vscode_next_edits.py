"""Next edits in a real workbench of VS Code: drawn in place, and walked, taken in part or dismissed by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.browser import ALT, CTRL
from tests.support.vscode import EDITOR, Open, Window, head

SILENT = {"confidence": 0.1}
"""No ghost text is worth showing."""

BODY = "def f(count):\n    x = count\n    y = count\n    return count\n"

RENAMED = BODY.replace("count", "total")

BELOW = BODY + "\n\nx = 1\n" * 40
"""Ends far below the renaming."""


NO_LIST = {"editor.wordBasedSuggestions": "off"}
"""No list pops up while one types."""


def renamed(
    window: Open, body: str = BODY, fill: dict[str, Any] = SILENT, settings: dict[str, Any] = NO_LIST
) -> Window:
    """A window in which the parameter in the second line has just become `total`."""
    vscode = window(fill, body, settings).is_ready()
    for key, modifiers in (("Home", CTRL), ("ArrowDown", 0), *3 * [("ArrowRight", CTRL)], ("d", CTRL)):
        vscode.page.press(key, modifiers)
    vscode.page.type("total")
    return vscode


def test_what_goes_is_struck_through_and_what_comes_stands_behind_it(window: Open) -> None:
    vscode = renamed(window)
    drawn = vscode.draws("total", "2 of 4 · Tab to jump")
    assert (drawn.removed, drawn.arrows) == ("count", 1)
    vscode.reads(head(SILENT) + BODY.replace("count", "total", 1))


def test_tab_jumps_and_applies_until_the_renaming_is_finished_and_then_indents(window: Open) -> None:
    vscode = renamed(window)
    for number in ("2", "3", "4"):
        vscode.draws("total", f"{number} of 4 · Tab to jump")
        vscode.page.press("Tab")
        assert vscode.draws("total", f"{number} of 4 · Tab to apply").arrows == 0
        vscode.page.press("Tab")
    vscode.reads(head(SILENT) + RENAMED)
    vscode.draws_nothing()
    vscode.page.press("Tab")
    vscode.reads(head(SILENT) + RENAMED.replace("return total", "return total    "))


def test_an_edit_out_of_sight_is_pointed_to_from_the_line_of_the_cursor(window: Open) -> None:
    vscode = renamed(window, BELOW)
    vscode.draws("total", "2 of 4 · Tab to jump")
    vscode.page.press("End", CTRL)
    vscode.page.press("ArrowUp")
    vscode.page.press("End")
    hint = "↑ line 3 · rename count to total (2 of 4) · Tab to jump"
    vscode.waits(lambda: (now := vscode.drawn()).hints == [hint] and (now.added, now.arrows) == ([], 1))
    vscode.page.press("Tab")
    vscode.draws("total", "2 of 4 · Tab to apply")


def test_escape_dismisses_an_edit_for_good(window: Open) -> None:
    vscode = renamed(window)
    vscode.draws("total", "2 of 4 · Tab to jump")
    vscode.page.press("Escape")
    vscode.draws_nothing()
    vscode.waits(lambda: len(vscode.calls("notifyRejected")) == 1)
    vscode.page.press("End", CTRL)
    vscode.draws("total", "2 of 3")
    vscode.page.press("ArrowUp")
    vscode.page.press("End")
    vscode.draws("total", "2 of 3 · Tab to jump")
    vscode.page.press("Tab")
    vscode.draws("total", "2 of 3 · Tab to apply")
    vscode.page.press("Tab")
    vscode.reads(head(SILENT) + "def f(total):\n    x = count\n    y = total\n    return count\n")


def test_all_places_are_renamed_by_one_key_and_taken_back_by_one(window: Open) -> None:
    vscode = renamed(window)
    vscode.draws("total", "2 of 4 · Tab to jump")
    vscode.page.press("Enter", ALT)
    vscode.reads(head(SILENT) + RENAMED)
    vscode.draws_nothing()
    vscode.page.press("z", CTRL)
    before = BODY.replace("count", "total", 1).splitlines()
    vscode.waits(lambda: set(before) <= set(vscode.page.texts(f"{EDITOR} .view-line")))


def test_tab_takes_ghost_text_first(window: Open) -> None:
    loud = {"text": ", other"}
    vscode = renamed(window, fill=loud)
    vscode.shows(", other")
    vscode.draws("total", "2 of 4 · Tab to jump")
    vscode.page.press("Tab")
    vscode.reads(head(loud) + BODY.replace("count", "total, other", 1))


def test_a_word_of_an_edit_is_applied_and_the_rest_stays_drawn(window: Open) -> None:
    body = "f(a)\ng(a)\nh(a)\n"
    vscode = window(SILENT, body, NO_LIST).is_ready()
    vscode.page.press("Home", CTRL)
    for _ in range(2):
        for key in ("ArrowDown", "End", "ArrowLeft"):
            vscode.page.press(key)
        vscode.page.type(", b=1")
    vscode.draws(", b=1", "Tab to jump")
    vscode.page.press("Tab")
    vscode.draws(", b=1", "Tab to apply")
    vscode.page.press("ArrowRight", CTRL)
    vscode.draws(" b=1", "Tab to apply")
    vscode.page.press("Tab")
    vscode.reads(head(SILENT) + body.replace("a", "a, b=1"))


def test_the_menu_goes_to_the_edit_and_switches_next_edits_off_and_on(window: Open) -> None:
    vscode = renamed(window)
    vscode.draws("total", "2 of 4 · Tab to jump")
    vscode.run("Mercury: Show Menu")
    vscode.waits(lambda: "Go to the next edit, line 3" in vscode.rows())
    assert {"Rename all 3 remaining", "Switch next edits off"} <= set(vscode.rows())
    vscode.page.press("Escape")
    vscode.run("Mercury: Jump to Next Edit")
    vscode.draws("total", "2 of 4 · Tab to apply")
    vscode.run("Mercury: Switch Next Edits On or Off")
    vscode.draws_nothing()
    vscode.run("Mercury: Switch Next Edits On or Off")
    vscode.draws("total", "2 of 4 · Tab to apply")


USER = "h(y.area)\n\nk(z.area)\n"


def in_two_files(window: Open, other: Path, hint: str) -> Window:
    """A window in which two lines have just been changed as the file `other`, open too, may be."""
    other.parent.mkdir()
    other.write_text(USER)
    vscode = window(SILENT, "f(x.area)\ng(x.area)\n", NO_LIST).is_ready()
    for name in ("b.py", "a.py"):
        vscode.page.press("p", CTRL)
        vscode.page.type(name)
        vscode.waits(lambda name=name: vscode.rows()[:1] == [name])
        vscode.page.press("Enter")
        vscode.waits(lambda name=name: any(name in text for text in vscode.page.texts(".tab.active")))
        vscode.waits(lambda name=name: name in str(vscode.calls("textDocument/didOpen")))
    vscode.page.press("Home", CTRL)
    for _ in range(2):
        for key, modifiers in (("ArrowDown", 0), ("Home", 0), *4 * [("ArrowRight", 0)], ("d", CTRL)):
            vscode.page.press(key, modifiers)
        vscode.page.type("size")
    vscode.waits(lambda: vscode.drawn().hints == [hint])
    return vscode


def test_what_was_done_twice_goes_on_in_another_open_file(window: Open, tmp_path: Path) -> None:
    other = tmp_path / "0" / "b.py"
    vscode = in_two_files(window, other, "→ b.py, line 1 · area → size · Tab to jump")
    vscode.page.press("Tab")
    vscode.draws("size", "Tab to apply")
    vscode.page.press("Tab")
    vscode.waits(lambda: other.read_text().startswith("h(y.size)\n"))
