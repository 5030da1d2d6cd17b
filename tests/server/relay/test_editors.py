"""Many editors on one daemon: none holds up another, none leaves anything behind, and daemons that end cost no key."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mercury_lsp.daemon import control
from mercury_lsp.daemon.address import UnixAddress, build
from tests.support.editor import PATIENCE, Editor, Refused, frame, script, span
from tests.support.sharing import Place, eventually

URI = "file:///sample.py"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="starts its servers by a shell, and stops processes")

CONTENT_MODIFIED, CANCELLED = -32801, -32800

PLAIN = [sys.executable, "-m", "mercury_lsp"]

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def connections(place: Place) -> int:
    return (place.status() or {"connections": 0})["connections"]


def works(editor: Editor, text: str = "suggested") -> None:
    """What it opens is suggested in."""
    uri = editor.opened(script(text=text) + "x = ")
    assert [item["insertText"] for item in editor.items(uri, 1, 4)] == [text]


# Sharing


def test_an_editor_that_does_not_read_holds_up_nobody(unix: Place):
    pipe = subprocess.PIPE
    with unix.editor() as other, subprocess.Popen(unix.command(), env=unix.env, stdin=pipe, stdout=pipe) as deaf:
        other.initialize()
        about = {"capabilities": {}, "processId": None, "rootUri": None}
        item = {"uri": URI, "languageId": "python", "version": 1, "text": "x" * 10**6}
        said = [("initialize", about), ("initialized", {}), ("textDocument/didOpen", {"textDocument": item})]
        for number, (method, params) in enumerate([*said, *[("test/text", {"uri": URI})] * 9]):
            deaf.stdin.write(frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        deaf.stdin.flush()
        assert select.select([deaf.stdout], (), (), PATIENCE)[0]
        works(other)
        deaf.kill()
        eventually(lambda: connections(unix) == 1)
        works(other)


# Ending


@linux
def test_nothing_is_left_of_an_editor_that_has_gone(unix: Place):
    with unix.editor() as stays:
        stays.initialize()
        daemon = unix.pid()
        eventually(unix.loaded)
        before = len(opened_by(daemon))
        for end in ("exit", "kill", "hang up"):
            for _ in range(2):
                editor = unix.editor().initialize()
                if end == "kill":
                    editor.process.kill()
                    assert editor.process.wait(PATIENCE) == -signal.SIGKILL
                elif end == "hang up":
                    editor.process.stdin.close()
                    assert editor.process.wait(PATIENCE) == 1
                editor.__exit__(None)
        eventually(lambda: connections(unix) == 1)
        eventually(lambda: len(opened_by(daemon)) <= before)
        works(stays)


def opened_by(process: int) -> set[str]:
    """What the descriptors of a process are, but for those that it closes meanwhile."""
    found = set()
    for each in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(os.readlink(each))
    return found


@linux
def test_a_daemon_that_has_ended_is_no_zombie_while_its_editors_are_open(unix: Place):
    with unix.editor() as editor:
        editor.initialize()
        editor.receive_all()  # what it says after the stop starts a daemon, and that would reap the last one
        ended = unix.pid()
        control.stop(unix.address)
        eventually(lambda: not Path(f"/proc/{ended}").exists())
        assert unix.status() is None


# Daemons that end while somebody types


KILLS = int(os.environ.get("MERCURY_KILLS", "6"))
"""`make chaos` asks for more."""


class Typist:
    """Types into a document and asks for a suggestion behind every key."""

    def __init__(self, editor: Editor):
        self.editor, self.text, self.asked = editor, "", list[int]()
        editor.open(URI, "")

    def key(self) -> None:
        letter = "abcdefg\n"[len(self.text) % 8]
        at = self.text.count("\n"), len(self.text.rpartition("\n")[2])
        self.editor.change(URI, len(self.text) + 2, {"range": span(at, at), "text": letter})
        self.text += letter
        self.asked.append(self.editor.inline(URI, 0, 0))

    def answers(self) -> list[list[dict[str, Any]]]:
        """The answers to every request, once all are there."""
        self.editor.until(lambda: all(self.editor.replies.get(each) for each in self.asked))
        return [self.editor.replies[each] for each in self.asked]


def kill_daemon(place: Place, typist: "Typist | None" = None) -> None:
    """End the daemon, and the engine's thread with it, as a crash does."""
    os.kill(place.pid(), signal.SIGKILL)


def pause(place: Place, typist: Typist) -> None:
    """Stop the daemon, and let it go on after some keys."""
    process = place.pid()
    os.kill(process, signal.SIGSTOP)
    for _ in range(10):
        typist.key()
    os.kill(process, signal.SIGCONT)


def kill_another_editor(place: Place, typist: Typist) -> None:
    """Another editor starts, and its server is killed while it types."""
    with Editor(command=place.command("--tireless"), env=place.env) as other:
        other.ask("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
        typist.key()
        other.process.kill()
        other.process.wait(PATIENCE)


LOSSES: list[Callable[[Place, Typist], None]] = [kill_daemon, pause, kill_daemon, kill_another_editor]
"""What happens while somebody types: one after the other, again and again."""


def text_after_all(editor: Editor, uri: str = URI) -> str | None:
    """The document as the daemon has it, asked until one answers."""
    while True:
        try:
            return editor.text(uri)
        except Refused as refused:
            assert refused.code == CONTENT_MODIFIED


@linux
def test_no_key_is_lost_and_no_request_answered_twice_while_daemons_are_killed(unix: Place):
    with unix.editor(None, "--tireless") as editor:
        typist = Typist(editor.initialize())
        for number in range(KILLS):
            for _ in range(20 + number % 7):
                typist.key()
            LOSSES[number % len(LOSSES)](unix, typist)
            for _ in range(20):
                typist.key()
            if number % 2:
                assert text_after_all(editor) == typist.text
        assert text_after_all(editor) == typist.text
        answers = typist.answers()
        assert {len(each) for each in answers} == {1}
        codes = {answer.get("error", {}).get("code") for [answer] in answers}
        assert codes <= {None, CONTENT_MODIFIED, CANCELLED}


# Many documents at once


def open_many(editor: Editor, count: int) -> None:
    """Open so many documents at once; the text of each is its number."""
    documents = ({"uri": f"file:///{n}.txt", "languageId": "text", "version": 1, "text": str(n)} for n in range(count))
    opening = (
        {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": each}} for each in documents
    )
    editor.write(b"".join(map(frame, opening)))


def test_ten_thousand_documents_opened_at_once_are_opened_once(unix: Place):
    with unix.editor() as editor:
        editor.initialize()
        before = unix.pid()
        open_many(editor, 10_000)
        assert [editor.text(f"file:///{number}.txt") for number in (0, 5_000, 9_999)] == ["0", "5000", "9999"]
        assert unix.pid() == before and unix.rejoins() == 0


def test_ten_thousand_documents_are_opened_once_more_on_the_next_daemon(unix: Place):
    with unix.editor() as editor:
        editor.initialize()
        open_many(editor, 10_000)
        assert editor.text("file:///9999.txt") == "9999"
        kill_daemon(unix)
        assert [text_after_all(editor, f"file:///{number}.txt") for number in (9_999, 0)] == ["9999", "0"]
        assert unix.rejoins() == 1


# How an editor starts it


def shell(script: str, *command: str) -> list[str]:
    """A command that a shell becomes once it has followed the script."""
    return ["/bin/sh", "-c", script, "sh", *command]


@pytest.mark.parametrize("redirected", ["", " 2>&-"], ids=["", "without standard error"])
def test_where_no_daemon_starts_an_editor_is_told_and_served_in_its_own_process(unix: Place, redirected: str):
    control.lock_path(unix.address).mkdir()
    command = shell(f'exec "$@"{redirected}', *PLAIN, *unix.address.arguments)
    with Editor(command=command, env=unix.env, stderr=subprocess.PIPE) as editor:
        editor.request("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    told = editor.process.stderr.read().decode()
    editor.process.stderr.close()
    control.lock_path(unix.address).rmdir()
    assert editor.process.returncode == 0
    assert not told if redirected else "exited with code" in told and "serving in this process" in told


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("option", ["", "--in-process"])
def test_without_standard_input_or_output_it_ends_at_once(unix: Place, closed: str, option: str):
    command = shell(f'exec "$@" {option} {closed}', *PLAIN, *unix.address.arguments)
    ended = subprocess.run(command, env=unix.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ended.returncode == 1 and ended.stdout == ""
    told = "mercury-lsp: standard input or output is closed, so there is no client to serve\n"
    assert ended.stderr == ("" if "2>&-" in closed else told)
    assert unix.status() is None


def test_editors_with_a_relative_runtime_folder_share_one_daemon_and_find_nothing_in_theirs(tmp_path: Path):
    folder = tmp_path / f"mercury-lsp-{os.getuid()}"
    place = Place(tmp_path, UnixAddress(folder / f"{build()}.sock"))
    place.env |= {"XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    editors = []
    try:
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
            editors.append(Editor(command=PLAIN, env=place.env, cwd=tmp_path / name))
            editors[-1].request("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
        assert connections(place) == 2
        for editor in editors:
            editor.__exit__(None)
        assert not [*(tmp_path / "one").iterdir(), *(tmp_path / "other").iterdir()]
        assert not (folder / "run").exists() and not (folder / "state").exists()
        assert (tmp_path / ".local" / "state" / "mercury-lsp" / f"{build()}.log").exists()
    finally:
        place.close()
