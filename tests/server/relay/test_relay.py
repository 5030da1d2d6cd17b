"""What the editor starts: it joins a daemon, starts it, and does not notice when one is lost."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mercury_lsp.daemon import control, server
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay import join, link
from tests.support.editor import PATIENCE, Editor, Refused, script, span
from tests.support.sharing import Place, eventually

URI = "file:///sample.py"

CONTENT_MODIFIED = -32801

PLAIN = [sys.executable, "-m", "mercury_lsp"]


def kill(place: Place) -> int:
    """End the daemon as a crash does; its process."""
    pid = place.pid()
    os.kill(pid, signal.SIGKILL)
    return pid


def lost(editor: Editor, place: Place) -> None:
    """Kill the daemon and wait until another one has taken over the editor's session."""
    before = kill(place)
    eventually(lambda: (place.status() or {}).get("pid", before) != before)
    eventually(lambda: (place.status() or {})["connections"] >= 1)


def text_after_all(editor: Editor, uri: str = URI) -> str | None:
    """The document as the daemon has it, asked until one answers."""
    while True:
        try:
            return editor.text(uri)
        except Refused as refused:
            assert refused.code == CONTENT_MODIFIED
            time.sleep(0.01)


# Starting


HEAVY = (
    "argparse",
    "asyncio",
    "dataclasses",
    "hashlib",
    "importlib.metadata",
    "inspect",
    "logging",
    "shutil",
    "tempfile",
)
"""Modules of Python that take half a megabyte or more each."""


@pytest.mark.skipif(sys.platform == "win32", reason="a Unix socket needs no token, and so no hashes")
def test_a_relay_imports_little(unix: Place, tmp_path: Path):
    (tmp_path / "run").mkdir(mode=0o700)
    command = """import sys; from mercury_lsp import cli; from mercury_lsp.relay.relay import Relay
def run(relay): print(*sys.modules); return 0
Relay.run = run; cli.main(["--stdio"])"""
    ran = subprocess.run(
        [sys.executable, "-c", command], env=unix.env, stdin=subprocess.PIPE, capture_output=True, text=True
    )
    subprocess.run([*PLAIN, "serve", "--stop"], env=unix.env, capture_output=True, check=True)
    imported = set(ran.stdout.split())
    assert "mercury_lsp.relay.link" in imported and not imported & {*HEAVY}
    others = {"torch", "lsprotocol", "tree_sitter", "numpy", "rich", "attrs", "cattrs"}
    assert not others & {name.partition(".")[0] for name in imported}


def test_editors_that_start_at_once_start_one_daemon(place: Place):
    with ThreadPoolExecutor() as pool:
        editors = list(pool.map(lambda _: place.editor().initialize(), range(4)))
    status = place.status()
    assert status is not None and status["connections"] == 4
    for editor in editors:
        editor.open(URI, script() + "x = ")
        assert len(editor.items(URI, 1, 4)) == 1
        editor.__exit__(None)
    assert len(place.loaded()) == 1


@pytest.mark.parametrize(
    "told",
    [["--in-process"], ["--stdio", "--in-process"], []],
    ids=["by an option", "beside the one that copilot.el and VS Code add", "by the environment"],
)
def test_told_so_it_serves_in_its_own_process(unix: Place, tmp_path: Path, told: list[str]):
    env = unix.env | ({} if told else {"MERCURY_IN_PROCESS": "1"})
    with Editor(command=[*PLAIN, *told], env=env) as editor:
        editor.request("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    assert not (tmp_path / "run").exists()


# Relaying


def test_a_relative_model_is_refused_as_it_may_be_any_repositorys(unix: Place, tmp_path: Path):
    (tmp_path / "models" / "mine").mkdir(parents=True)
    unix.cwd = tmp_path
    with unix.editor() as editor:
        editor.initialize(options={"model": "models/mine"})
        eventually(unix.loaded)
        assert [line.split()[1] for line in unix.loaded()] == ["None"]


@pytest.mark.parametrize("msg_id", [{"id": "last"}, {}])  # Kate gives it none
@pytest.mark.parametrize(("last", "code"), [(["shutdown", "exit"], 0), (["exit"], 1), ([], 1)])
def test_the_exit_code_is_the_servers(unix: Place, last: list[str], msg_id: dict[str, str], code: int):
    editor = unix.editor().initialize()
    for method in last:
        editor.send({"jsonrpc": "2.0", "method": method} | (msg_id if method == "shutdown" else {}))
    editor.process.stdin.close()
    assert editor.process.wait(PATIENCE) == code


# Losing the daemon


def test_a_killed_daemon_is_replaced_and_documents_are_as_the_editor_has_them(place: Place):
    with place.editor() as editor:
        editor.initialize(options={"eagerness": "high"})
        editor.open(URI, script(text="old", confidence=0.6) + "x = 😀\r\n")
        editor.open("file:///closed.py", "gone")
        editor.change(URI, 2, {"range": span((1, 4), (1, 6)), "text": "né"})
        editor.notify("textDocument/didClose", {"textDocument": {"uri": "file:///closed.py"}})
        assert editor.text(URI) is not None
        kill(place)
        # Most of this comes while there is no daemon.
        editor.change(URI, 3, {"range": span((0, 0), (1, 0)), "text": script(text="new", confidence=0.6)})
        editor.change(URI, 4, {"range": span((1, 6), (1, 6)), "text": "w"})
        editor.open("file:///late.py", "late")
        assert text_after_all(editor) == script(text="new", confidence=0.6) + "x = néw\r\n"
        assert editor.text("file:///late.py") == "late"
        assert editor.text("file:///closed.py") is None
        assert [item["insertText"] for item in editor.items(URI, 1, 7)] == ["new"]  # the eagerness is the editor's, too
        assert editor.received("window/showMessage") == []
        assert editor.replies.get(1, []) == []  # initialize was answered once


def test_the_next_daemon_is_told_notebooks_as_the_editor_has_them(place: Place):
    uris = [f"cell:{number}" for number in range(4)]
    items = [{"uri": uri, "languageId": "python", "version": 1, "text": f"x{uri[-1]}\n"} for uri in uris]
    items[2]["text"] = script(echo=True) + "x2 = "
    cells = [{"kind": 2, "document": uri} for uri in uris]
    notebook = {"uri": "file:///a.ipynb", "notebookType": "jupyter-notebook", "version": 1, "cells": cells[:3]}
    array = {"start": 0, "deleteCount": 2, "cells": [cells[3], cells[0]]}
    structure = {"array": array, "didOpen": [items[3]], "didClose": [{"uri": uris[1]}]}
    typed = {"document": {"uri": uris[0], "version": 2}, "changes": [{"range": span((0, 0), (0, 0)), "text": "y"}]}
    with place.editor() as editor:
        editor.initialize()
        editor.notify("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": items[:3]})
        for change in ({"structure": structure}, {"textContent": [typed]}):
            about = {"notebookDocument": {"uri": "file:///a.ipynb", "version": 2}, "change": {"cells": change}}
            editor.notify("notebookDocument/didChange", about)
        assert editor.text(uris[0]) == "yx0\n"
        kill(place)
        assert text_after_all(editor, uris[0]) == "yx0\n" and editor.text(uris[1]) is None
        [item] = eventually(lambda: editor.items(uris[2], 1, 5, 1))
        assert item["insertText"] == "x3", "the first cell is read first"
        about = {"notebookDocument": {"uri": "file:///a.ipynb"}, "cellTextDocuments": [{"uri": uri} for uri in uris]}
        editor.notify("notebookDocument/didClose", about)
        kill(place)
        assert text_after_all(editor, uris[0]) is None


def test_a_request_that_the_daemon_took_along_is_answered_by_a_harmless_error(unix: Place):
    with unix.editor() as editor:
        editor.initialize()
        editor.open(URI, script(ms=60_000) + "x = ")
        asked = editor.inline(URI, 1, 4)
        editor.receive_all()
        kill(unix)
        assert editor.reply(asked)["error"]["code"] == CONTENT_MODIFIED
        text_after_all(editor)


def test_all_editors_come_back_to_one_daemon_and_one_load(unix: Place):
    with unix.editor() as one, unix.editor() as other:
        for editor, text in ((one, "first"), (other, "second")):
            editor.initialize()
            editor.open(URI, script(text=text) + "x = ")
            editor.items(URI, 1, 4)
        before = unix.pid()
        kill(unix)
        assert [text_after_all(editor) for editor in (one, other)] == [
            script(text=text) + "x = " for text in ("first", "second")
        ]
        assert [editor.items(URI, 1, 4)[0]["insertText"] for editor in (one, other)] == ["first", "second"]
        assert len({line.split()[0] for line in unix.loaded()}) == len(unix.loaded()) == 2
        assert unix.pid() != before


def test_settings_and_folders_that_changed_since_are_told_to_the_next_daemon(unix: Place):
    with unix.editor() as editor:
        editor.initialize(rootUri="file:///work/old")
        editor.notify("workspace/didChangeConfiguration", {"settings": {"mercury": {"enabled": False}}})
        folders = {"added": [{"uri": "file:///work/new", "name": "new"}], "removed": []}
        editor.notify("workspace/didChangeWorkspaceFolders", {"event": folders})
        lost(editor, unix)
        editor.open(URI, script() + "x = ")
        text_after_all(editor)
        assert editor.items(URI, 1, 4) == []
        editor.notify("workspace/didChangeConfiguration", {"settings": {"mercury": {}}})
        for root in ("old", "new"):
            editor.open(f"file:///work/{root}/deep/a.py", script(echo=True) + "x = ")
            [item] = editor.items(f"file:///work/{root}/deep/a.py", 1, 4)
            assert "deep/a.py" in item["insertText"]


def test_what_the_lost_daemon_had_registered_is_taken_back_before_it_is_registered_anew(unix: Place):
    with unix.editor() as editor:
        editor.initialize(
            {"workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}}
        )
        first = editor.wait_for("client/registerCapability")["registrations"][0]
        kill(unix)
        taken_back = editor.wait_for("client/unregisterCapability")["unregisterations"]
        assert taken_back == [{"id": first["id"], "method": first["method"]}]
        assert editor.wait_for("client/registerCapability", 2)["registrations"][0]["id"] == first["id"]


# A daemon that hangs


@pytest.fixture
def stopped(unix: Place) -> Iterator["subprocess.Popen[bytes]"]:
    """A daemon that does not do anything from the moment the test stops it."""
    made = unix.daemon()
    yield made
    made.send_signal(signal.SIGCONT)


def stop_on_demand(place: Place) -> int:
    """Stop the daemon that an editor started; its process."""
    process = place.pid()
    os.kill(process, signal.SIGSTOP)
    return process


def is_alive(process: int) -> bool:
    """Whether the process exists and has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "XZ"
    except FileNotFoundError:
        return False


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@linux
@pytest.mark.parametrize("sent", [0, 1_900_000], ids=["", "and takes nothing more"])
def test_a_daemon_that_hangs_is_replaced_and_ended_if_an_editor_started_it(unix: Place, sent: int):
    with unix.editor(None, "--hasty") as editor:
        editor.initialize()
        editor.open(URI, script() + "x = ")
        editor.receive_all()
        hung = stop_on_demand(unix)
        editor.change(URI, 2, {"range": span((1, 0), (1, 0)), "text": "y" * sent})
        assert editor.reply(editor.inline(URI, 1, 4))["error"]["code"] == CONTENT_MODIFIED
        assert text_after_all(editor) == script() + "y" * sent + "x = "
        assert unix.pid() != hung and not is_alive(hung)
        assert editor.received("window/showMessage") == []


@linux
def test_a_daemon_that_hangs_and_was_started_by_hand_is_left_alone_and_ends_when_it_wakes(
    unix: Place, stopped: subprocess.Popen
):
    with unix.editor(None, "--hasty") as editor:
        editor.initialize()
        editor.open(URI, "x")
        editor.receive_all()
        stopped.send_signal(signal.SIGSTOP)
        assert editor.reply(editor.inline(URI, 0, 1))["error"]["code"] == CONTENT_MODIFIED
        assert text_after_all(editor) == "x"
        fresh = unix.pid()
        assert fresh != stopped.pid and stopped.poll() is None
        stopped.send_signal(signal.SIGCONT)
        assert stopped.wait(PATIENCE) == 0
        assert unix.pid() == fresh  # its socket is not the other's to remove
        assert text_after_all(editor) == "x"


@linux
def test_all_editors_leave_a_daemon_that_hangs_for_one_other(unix: Place):
    with unix.editor(None, "--hasty") as one, unix.editor(None, "--hasty") as other:
        for editor in (one, other):
            editor.initialize()
            editor.open(URI, f"of {editor.process.pid}")
            editor.receive_all()
        hung = stop_on_demand(unix)
        for editor in (one, other):
            editor.ask("test/text", {"uri": URI})
        assert [text_after_all(editor) for editor in (one, other)] == [
            f"of {each.process.pid}" for each in (one, other)
        ]
        assert (unix.status() or {})["connections"] == 2 and not is_alive(hung)


def test_shutdown_does_not_wait_for_a_daemon_that_hangs(unix: Place, stopped: subprocess.Popen):
    editor = unix.editor().initialize()
    editor.receive_all()
    stopped.send_signal(signal.SIGSTOP)
    assert editor.request("shutdown", None) is None
    editor.notify("exit", None)
    assert editor.process.wait(PATIENCE) == 0
    editor.process.stdin.close()
    editor.process.stdout.close()


@pytest.mark.parametrize(("after_hang", "calls"), [(False, 4), (True, 1)], ids=["at a start", "after a lost link"])
def test_a_daemon_that_hangs_is_replaced_after_unanswered_calls(
    unix: Place, stopped: subprocess.Popen, after_hang: bool, calls: int, monkeypatch: pytest.MonkeyPatch
):
    answered: list[bool] = []

    def call(*_: object) -> dict[str, Any]:
        answered.append(False)
        raise TimeoutError("as if it had waited")

    class Replaced(Exception):
        """The test has seen enough."""

    def replace(address: object) -> None:
        assert len(answered) == calls
        raise Replaced

    monkeypatch.setattr(control, "call", call)
    monkeypatch.setattr(control, "replace", replace)
    with pytest.raises(Replaced):
        join.join(unix.address, after_hang=after_hang)


def test_a_daemon_that_hangs_is_replaced_within_ten_seconds():
    left = link.POLL_SECONDS * link.POLLS_BEFORE_LOSS
    called, seconds_to_start = join.CALL_SECONDS, 3.0
    assert left >= 4 * server.SIGN_OF_LIFE_SECONDS
    assert left >= link.SEND_SECONDS and left + called + seconds_to_start <= 10.0
    assert join.CALL_SECONDS * join.MAX_SILENT_CALLS + seconds_to_start <= 10.0


def test_a_daemon_that_is_slow_to_start_is_not_replaced(unix: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(join, "CALL_SECONDS", 0.2)
    monkeypatch.setattr(join, "START_SECONDS", 2.0)
    replaced: list[object] = []
    monkeypatch.setattr(control, "replace", replaced.append)
    started = tmp_path / "started"
    silent = (
        "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[-1]); s.listen(); time.sleep(9)"
    )
    serve = ("sh", "-c", f'echo $$ >> {started}; exec "$@"', "sh", sys.executable, "-c", silent)
    with pytest.raises(DaemonError, match="no daemon answers"):
        join.join(unix.address, serve)
    assert len(started.read_text().split()) == 1 and not replaced
    os.kill(int(started.read_text()), signal.SIGKILL)
