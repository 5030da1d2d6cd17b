"""The VS Code extension, driven in a real workbench by the keys a user would press."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.browser import CTRL
from tests.support.model_list import asked, command
from tests.support.vscode import FAKE_SERVER, STATUS, Open, Window, head

SUM = {"text": "1 + 2"}

PANEL = ".panel .view-lines"


def suggests(vscode: Window) -> None:
    """What SUM says comes while one types."""
    vscode.page.type("x = ")
    vscode.shows("1 + 2")


def processes(argument: str) -> list[int]:
    """Those that were started with this argument."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue  # it has ended
    return found


def test_tab_accepts_the_ghost_text_that_comes_while_one_types(window: Open) -> None:
    vscode = window(SUM).is_ready()
    suggests(vscode)
    vscode.page.press("Tab")
    vscode.reads(head(SUM) + "x = 1 + 2")


def test_several_lines_are_shown_and_inserted(window: Open) -> None:
    fill = {"text": "a = 1\n    return a"}
    vscode = window(fill, "def f():").is_ready()
    vscode.page.press("Enter")
    vscode.shows("a = 1\n    return a")
    vscode.page.press("Tab")
    vscode.reads(head(fill) + "def f():\n    a = 1\n    return a")


def test_a_word_can_be_accepted_and_then_the_rest(window: Open) -> None:
    vscode = window(SUM).is_ready()
    suggests(vscode)
    vscode.page.press("ArrowRight", CTRL)
    vscode.reads(head(SUM) + "x = 1")
    vscode.shows(" + 2")
    vscode.page.press("Tab")
    vscode.reads(head(SUM) + "x = 1 + 2")


def test_a_subtle_text_comes_with_the_key_and_stays_while_it_is_typed(window: Open) -> None:
    vscode = window(SUM, settings={"mercury.display": "subtle"}).is_ready()
    vscode.page.type("x = ")
    vscode.settles()
    assert vscode.ghost() == ""
    vscode.run("Mercury: Show Marked Suggestion")
    vscode.shows("1 + 2")
    vscode.page.type("1 +")
    vscode.shows(" 2")


def test_fill_here_inserts_and_puts_the_cursor_behind(window: Open) -> None:
    unsure = SUM | {"confidence": 0.1}
    vscode = window(unsure, "x = ").is_ready()
    vscode.run("Mercury: Fill Here")
    vscode.reads(head(unsure) + "x = 1 + 2")
    vscode.waits(lambda: "Ln 2, Col 10" in vscode.page.texts(".statusbar-item"))


def test_silence_is_explained_by_a_command(window: Open) -> None:
    vscode = window(SUM | {"confidence": 0.1}).is_ready()
    vscode.page.type("x = ")
    vscode.settles()
    vscode.run("Mercury: Explain Why Nothing Is Shown")
    vscode.waits(lambda: "text at the cursor" in "".join(vscode.page.texts(".monaco-dialog-box")))
    assert not any("text at the cursor" in message for message in vscode.messages())


def test_the_menu_of_code_actions_has_both(window: Open) -> None:
    silent = {"confidence": 0.1}
    vscode = window(silent, "def f(count):\n    return count\n").is_ready()
    to_the_name = (("Home", CTRL), ("ArrowDown", 0), ("ArrowRight", CTRL), ("ArrowRight", CTRL), ("ArrowRight", 0))
    for key, modifiers in (*to_the_name, ("d", CTRL)):
        vscode.page.press(key, modifiers)
    vscode.page.type("total")
    vscode.page.press("Escape")
    vscode.reads(head(silent) + "def f(total):\n    return count\n")
    vscode.page.press("Period", CTRL)
    rows = ".action-widget .monaco-list-row"
    vscode.waits(lambda: "Mercury: apply next edit" in vscode.page.texts(rows))
    assert "Mercury: fill here" in vscode.page.texts(rows)
    vscode.page.press("Enter")
    vscode.reads(head(silent) + "def f(total):\n    return total\n")


def test_the_status_says_ready_and_its_menu_switches_suggestions_off(window: Open) -> None:
    vscode = window(SUM)
    vscode.waits(lambda: vscode.status() == "Mercury ready: fake on cpu")
    vscode.page.click(STATUS)
    vscode.waits(lambda: "Switch off" in vscode.rows())
    assert vscode.rows() == [
        "Switch off",
        "Switch off for python",
        "Look for a next edit",
        "Switch next edits off",
        "Choose model",
        "Explain why nothing is shown",
        "Show statistics",
        "Run doctor",
        "Show log",
        "Restart server",
    ]
    vscode.page.press("Enter")
    vscode.waits(lambda: vscode.status() == "Mercury off: switched off by mercury.enabled")


def test_settings_reach_the_server_as_they_change(window: Open) -> None:
    vscode = window(SUM).is_ready()
    vscode.configure({"mercury.enabled": False})
    vscode.waits(lambda: vscode.status().startswith("Mercury off"))
    vscode.configure({"mercury.effort": "most"})
    vscode.waits(lambda: any("mercury.effort: 'most'" in message for message in vscode.messages()))


def test_a_command_that_is_not_there_is_told_once_with_its_mend(window: Open) -> None:
    gone = {"mercury.command": ["no-such-mercury"]}
    vscode = window(SUM, settings=gone)
    vscode.waits(lambda: any("no-such-mercury was not found" in message for message in vscode.messages()))
    assert "pip install" in vscode.messages()[0] and "mercury.command" in vscode.messages()[0]
    vscode.waits(lambda: "error: no-such-mercury was not found" in vscode.status())
    vscode.waits(lambda: "no-such-mercury" in vscode.remembers())
    again = window(SUM, settings=gone)
    again.waits(lambda: "error: no-such-mercury was not found" in again.status())
    again.run("Mercury: Fill Here")
    again.waits(lambda: any("Mercury error: no-such-mercury" in message for message in again.messages()))
    assert not any("Mercury: no-such-mercury" in message for message in again.messages())


def test_a_workspace_names_no_program(window: Open, tmp_path: Path) -> None:
    mark = f"--of={tmp_path}"
    vscode = window(SUM, settings={"mercury.command": [*FAKE_SERVER, mark]}).is_ready()
    [first] = processes(mark)
    vscode.configure({"mercury.command": ["no-such-mercury-of-a-repository"]})
    vscode.run("Mercury: Restart Server")
    vscode.waits(lambda: vscode.status().startswith("Mercury loading"))
    vscode.is_ready()
    assert first not in processes(mark) and len(processes(mark)) == 1
    suggests(vscode)


def test_a_server_that_is_killed_is_started_again(window: Open, tmp_path: Path) -> None:
    mark = f"--of={tmp_path}"
    vscode = window(SUM, settings={"mercury.command": [*FAKE_SERVER, mark]}).is_ready()
    [first] = processes(mark)
    os.kill(first, signal.SIGKILL)
    vscode.waits(lambda: first not in processes(mark) and len(processes(mark)) == 1)
    vscode.is_ready()
    suggests(vscode)


def test_a_server_that_always_ends_is_given_up_with_buttons_that_help(window: Open) -> None:
    vscode = window(SUM, settings={"mercury.command": ["false"]})
    vscode.waits(lambda: any("ends whenever it is started" in message for message in vscode.messages()))
    vscode.waits(lambda: "ends whenever it is started" in vscode.status())
    assert vscode.page.texts(".notifications-toasts .monaco-button") == ["Run Doctor", "Show Log", "Try Again"]


def test_a_workspace_that_is_not_trusted_names_no_program(window: Open, tmp_path: Path) -> None:
    trap = tmp_path / "0" / ".vscode" / "settings.json"
    trap.parent.mkdir(parents=True)
    trap.write_text(json.dumps({"mercury.command": ["touch", str(tmp_path / "sprung")], "mercury.effort": "low"}))
    careful = {"security.workspace.trust.enabled": True, "security.workspace.trust.startupPrompt": "never"}
    vscode = window(SUM, settings=careful).is_ready()
    assert not (tmp_path / "sprung").exists()
    suggests(vscode)


def test_the_model_that_is_chosen_from_the_list_is_used(window: Open, tmp_path: Path) -> None:
    mark = f"--of={tmp_path}"
    vscode = window(SUM, settings={"mercury.command": command(tmp_path, [*FAKE_SERVER, mark])}).is_ready()
    [first] = processes(mark)
    vscode.run("Mercury: Choose Model")
    vscode.waits(lambda: vscode.rows() == ["bundled", "large", "larger"])
    assert vscode.details() == [
        "Apache-2.0, 107 MB",
        "licence unknown, 537 MB, 60 ms a suggestion",
        "MIT, 1117 MB, about 180 ms a suggestion, to be downloaded",
    ]
    vscode.page.press("ArrowDown")
    vscode.page.press("Enter")
    vscode.waits(lambda: asked(tmp_path) == [["list", "--json"], ["use", "large"]])
    vscode.waits(lambda: vscode.status().startswith("Mercury loading"))
    vscode.is_ready()
    assert first not in processes(mark) and len(processes(mark)) == 1
    suggests(vscode)


def test_a_model_that_is_not_installed_is_added_in_a_terminal_which_can_ask(window: Open, tmp_path: Path) -> None:
    vscode = window(SUM, settings={"mercury.command": command(tmp_path, FAKE_SERVER)}).is_ready()
    vscode.run("Mercury: Choose Model")
    vscode.waits(lambda: "larger" in vscode.rows())
    vscode.page.press("ArrowDown")
    vscode.page.press("ArrowDown")
    vscode.page.press("Enter")
    vscode.waits(lambda: asked(tmp_path)[-1:] == [["add", "larger"]])


def test_the_question_about_a_larger_model_stays_in_the_menu(window: Open, tmp_path: Path) -> None:
    question = "Download the big one?"
    (tmp_path / "larger.py").write_text(f"print({json.dumps(json.dumps({'name': 'big', 'question': question}))})")
    apart = ["env", f"XDG_DATA_HOME={tmp_path}", *FAKE_SERVER, "--larger", str(tmp_path / "larger.py")]
    vscode = window(SUM, settings={"mercury.command": apart}).is_ready()
    vscode.waits(lambda: vscode.messages() == [question])
    vscode.run("Notifications: Clear All Notifications")
    vscode.waits(lambda: not vscode.messages())
    vscode.run("Mercury: Show Menu")
    vscode.waits(lambda: "Download a larger model…" in vscode.rows())
    vscode.page.type("larger model")
    vscode.waits(lambda: (vscode.rows(), vscode.details()) == (["Download a larger model…"], ["big"]))
    vscode.page.press("Enter")
    vscode.waits(lambda: vscode.messages() == [question])


def test_a_new_file_without_a_name_is_served_too(window: Open) -> None:
    vscode = window(SUM).is_ready()
    vscode.run("File: New Untitled Text File")
    vscode.waits(lambda: any("Untitled" in text for text in vscode.page.texts(".tab.active")))
    vscode.page.type("x = ")
    vscode.run("Trigger Inline Suggestion")
    vscode.shows("suggested")


@pytest.mark.slow
def test_the_real_model_suggests_and_is_counted_and_found_well(window: Open) -> None:
    command = {"mercury.command": [sys.executable, "-m", "mercury_lsp"]}
    text = "def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):"
    vscode = window({}, text, command).is_ready()
    vscode.page.press("Enter")
    ghost = vscode.waits(vscode.ghost)
    vscode.page.press("Tab")
    vscode.waits(lambda: vscode.file.read_text().rstrip().endswith(ghost.splitlines()[-1].strip()))
    vscode.run("Mercury: Show Statistics")
    vscode.waits(lambda: any("you took" in text.replace("\xa0", " ") for text in vscode.page.texts(PANEL)))
    vscode.run("Mercury: Run Doctor")
    vscode.waits(lambda: any(text.startswith("ok ") for text in vscode.page.texts(".panel .view-line")))
