"""The one process that relays for all editors: what they share, what they do not, and when it ends."""

import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mercury_lsp.commands import doctor
from mercury_lsp.daemon import control, handshake
from mercury_lsp.daemon.address import UnixAddress, build, default_address, hub_address
from mercury_lsp.relay.stdio import HandedStdio
from tests.support.editor import PATIENCE, Editor, Refused, frame, script, span
from tests.support.sharing import Place, eventually

URI = "file:///sample.py"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="descriptors cannot be handed over there")

CONTENT_MODIFIED, CANCELLED = -32801, -32800

PLAIN = [sys.executable, "-m", "mercury_lsp"]

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def connections(place: Place) -> int:
    return (place.status() or {"connections": 0})["connections"]


def works(editor: Editor, text: str = "suggested") -> None:
    """What it opens is suggested in."""
    uri = editor.opened(script(text=text) + "x = ")
    assert [item["insertText"] for item in editor.items(uri, 1, 4)] == [text]


def kill_hub(place: Place) -> int:
    """End the hub as a crash does; its process."""
    killed = eventually(place.hub)
    os.kill(killed, signal.SIGKILL)
    return killed


# Sharing


def test_two_editors_share_one_hub_and_one_daemon(place: Place):
    with place.editor() as one, place.editor() as other:
        for editor, text in ((one, "first"), (other, "second")):
            editor.initialize()
            works(editor, text)
        hub = place.hub()
        assert hub not in (None, one.process.pid, other.process.pid, place.pid())
        assert connections(place) == 2 and len(place.loaded()) == 1


def test_editors_that_start_at_once_share_one_hub(unix: Place):
    with ThreadPoolExecutor() as pool:
        editors = list(pool.map(lambda _: unix.editor().initialize(), range(6)))
    assert unix.hub() is not None and connections(unix) == 6
    for editor in editors:
        works(editor)
        editor.__exit__(None)


def test_both_survive_the_daemon(unix: Place):
    with unix.editor() as one, unix.editor() as other:
        for editor in (one, other):
            editor.initialize()
            editor.open(URI, f"of {editor.process.pid}")
            editor.receive_all()
        hub, before = unix.hub(), unix.pid()
        os.kill(before, signal.SIGKILL)
        eventually(lambda: connections(unix) == 2)
        assert [editor.text(URI) for editor in (one, other)] == [f"of {each.process.pid}" for each in (one, other)]
        assert unix.hub() == hub and unix.pid() != before


@linux
def test_a_daemon_is_started_in_the_environment_of_the_editor_that_wants_it(unix: Place):
    unix.env["MARK"] = "first"
    with unix.editor() as first:
        first.initialize()
        first.receive_all()  # what it says after the stop starts a daemon
        control.stop(unix.address)
        unix.env["MARK"] = "second"
        with unix.editor() as second:
            second.initialize()
            assert b"MARK=second" in Path(f"/proc/{unix.pid()}/environ").read_bytes().split(b"\0")


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


@pytest.mark.parametrize("bad", [b"no header\r\n\r\n", b"Content-Length: 3\r\n\r\n{]}"], ids=["header", "body"])
def test_a_client_that_floods_with_bad_frames_and_does_not_read_is_still_read(unix: Place, bad: bytes):
    pipe = subprocess.PIPE
    with subprocess.Popen(unix.command(), env=unix.env, stdin=pipe, stdout=pipe) as deaf, ThreadPoolExecutor() as pool:
        pool.submit(lambda: (deaf.stdin.write(bad * 20_000), deaf.stdin.flush())).result(PATIENCE)
        deaf.stdin.close()
        assert deaf.wait(PATIENCE) == 1
        assert b"-32700" in deaf.stdout.read()


def test_the_doctor_names_the_hub(unix: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "all_addresses", lambda: [unix.address])
    with unix.editor() as editor:
        editor.initialize()
        assert f"its editors' hub is process {unix.hub()}" in doctor._daemons()


def test_the_doctor_names_the_hub_of_a_daemon_that_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    place = Place(tmp_path, default_address())
    with place.editor() as editor:
        editor.initialize()
        editor.receive_all()  # what it says after the stop starts a daemon
        control.stop(place.address)
        at = place.address.path
        assert doctor._daemons() == f"none is running at {at}, its editors' hub is process {place.hub()}"
    place.close()


@pytest.mark.parametrize(
    "said",
    [
        b"noise\n",
        b"[]\n",
        b"{}\n",
        b'{"folder": "/", "environment": {}, "more": 1}\n',
        b'{"folder": 1, "environment": {}}\n',
        b'{"folder": "/", "environment": {"A": 1}}\n',
    ],
)
def test_who_does_not_say_where_it_comes_from_is_hung_up_on_without_a_word(unix: Place, tmp_path: Path, said: bytes):
    with unix.editor() as editor:
        editor.initialize()
        caller, _ = hub_address(unix.address).connect()
        with caller:
            caller.settimeout(PATIENCE)
            assert handshake.read_line(caller)
            caller.sendall(said)
            assert caller.recv(1) == b""
        works(editor)
        [log] = (tmp_path / "state" / "mercury-lsp").iterdir()
        assert "Traceback" not in log.read_text()


def test_the_socket_is_its_owners_alone(place: Place):
    with place.editor() as editor:
        editor.initialize()
        assert stat.S_IMODE(hub_address(place.address).path.stat().st_mode) == 0o600


# Ending


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_editors_killed_server_is_forgotten_and_the_others_stay(unix: Place, number: int):
    with unix.editor() as one, unix.editor() as other:
        one.initialize()
        other.initialize()
        one.process.send_signal(number)
        assert one.process.wait(PATIENCE) == -number
        eventually(lambda: connections(unix) == 1)
        works(other)


def test_an_editor_that_is_gone_is_forgotten(unix: Place):
    with unix.editor() as one, unix.editor() as other:
        one.initialize()
        other.initialize()
        one.process.stdin.close()
        assert one.process.wait(PATIENCE) == 1
        eventually(lambda: connections(unix) == 1)
        works(other)


def test_the_hub_ends_after_the_last_editor_and_the_next_start_works(unix: Place):
    for _ in range(2):
        with unix.editor() as editor:
            editor.initialize()
            assert unix.hub() is not None
        eventually(lambda: unix.hub() is None)
        assert not hub_address(unix.address).path.exists()


def test_no_editor_is_lost_to_a_hub_that_is_about_to_end(unix: Place):
    def come_and_go(_: int) -> int:
        editor = unix.editor(None, "--brief").initialize()
        editor.__exit__(None)
        return editor.process.returncode

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(come_and_go, range(24))) == {0}


@linux
def test_nothing_is_left_of_an_editor_that_has_gone(unix: Place):
    def held() -> tuple[int, int]:
        return tuple(len(os.listdir(f"/proc/{unix.hub()}/{kind}")) for kind in ("fd", "task"))

    with unix.editor() as stays:
        stays.initialize()
        before = held()
        for end in ("exit", "kill", "hang up"):
            for _ in range(2):
                editor = unix.editor().initialize()
                if end == "kill":
                    editor.process.kill()
                    editor.process.wait(PATIENCE)
                elif end == "hang up":
                    editor.process.stdin.close()
                    editor.process.wait(PATIENCE)
                editor.__exit__(None)
        eventually(lambda: held() == before)


@linux
def test_the_hub_and_who_waits_have_an_editors_pipes_and_the_daemon_has_not(unix: Place):
    with unix.editor() as editor:
        editor.initialize()
        ours = {f"pipe:[{os.fstat(each.fileno()).st_ino}]" for each in (editor.process.stdin, editor.process.stdout)}
        for process, has in ((unix.hub(), ours), (unix.pid(), set()), (editor.process.pid, ours)):
            assert opened_by(process) & ours == has  # who waits goes on with another hub if this one is killed


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


# A hub that is killed


def text_after_all(editor: Editor, uri: str = URI) -> str | None:
    """The document as the daemon has it, asked until one answers."""
    while True:
        try:
            return editor.text(uri)
        except Refused as refused:
            assert refused.code == CONTENT_MODIFIED


@linux
def test_editors_survive_a_killed_hub_with_their_documents_and_settings(unix: Place):
    with unix.editor() as one, unix.editor() as other:
        for editor in (one, other):
            editor.initialize(options={"eagerness": "high"})
            editor.open(URI, script(text="new", confidence=0.6) + "x = 😀\r\n")
            editor.change(URI, 2, {"range": span((1, 4), (1, 6)), "text": "né"})
            editor.receive_all()
        killed, daemon = kill_hub(unix), unix.pid()
        for editor in (one, other):
            editor.change(URI, 3, {"range": span((1, 6), (1, 6)), "text": "w"})
            assert text_after_all(editor) == script(text="new", confidence=0.6) + "x = néw\r\n"
            assert [item["insertText"] for item in editor.items(URI, 1, 7)] == ["new"]
            assert editor.received("window/showMessage") == []
            assert editor.replies.get(1, []) == []  # initialize was answered once
        assert unix.hub() not in (None, killed) and unix.pid() == daemon
    assert one.process.returncode == other.process.returncode == 0


@linux
def test_a_killed_hub_and_a_killed_daemon_are_one_loss(unix: Place):
    with unix.editor() as editor:
        editor.initialize()
        editor.open(URI, "text")
        editor.receive_all()
        os.kill(unix.pid(), signal.SIGKILL)
        kill_hub(unix)
        assert text_after_all(editor) == "text"


@linux
def test_a_request_that_the_hub_took_along_is_answered_once_by_a_harmless_error(unix: Place):
    with unix.editor() as editor:
        editor.initialize()
        editor.open(URI, script(ms=60_000) + "x = ")
        asked = editor.inline(URI, 1, 4)
        editor.receive_all()
        kill_hub(unix)
        assert editor.reply(asked)["error"]["code"] == CONTENT_MODIFIED
        text_after_all(editor)
        assert not editor.replies.get(asked)


@linux
@pytest.mark.parametrize("size", [3, 30, 300, 3_000_000])
def test_half_a_message_that_the_hub_took_along_is_not_lost(unix: Place, size: int):
    with unix.editor() as editor:
        editor.initialize()
        editor.receive_all()
        text = "é" * 2_000_000
        opened = frame(
            {
                "jsonrpc": "2.0",
                "method": "textDocument/didOpen",
                "params": {"textDocument": {"uri": URI, "languageId": "text", "version": 1, "text": text}},
            }
        )
        editor.write(opened[:size])
        kill_hub(unix)
        editor.write(opened[size:])
        assert text_after_all(editor) == text


# A hub that hangs


@linux
def test_a_hub_that_hangs_is_ended_and_its_editors_go_on_with_another(unix: Place):
    with unix.editor(None, "--strict") as one, unix.editor(None, "--strict") as other:
        for editor in (one, other):
            editor.initialize()
            editor.open(URI, f"of {editor.process.pid}")
            editor.receive_all()
        hung = eventually(unix.hub)
        os.kill(hung, signal.SIGSTOP)
        for editor in (one, other):
            editor.change(URI, 2, {"range": span((0, 0), (0, 0)), "text": "typed "})
            assert text_after_all(editor) == f"typed of {editor.process.pid}"
        assert unix.hub() not in (None, hung)
        assert not any("mercury/p" in f"{method}" for editor in (one, other) for method, _ in editor.notices)


@linux
def test_a_hub_that_was_stopped_for_a_moment_goes_on_itself(unix: Place):
    with unix.editor() as editor:
        editor.initialize()
        editor.open(URI, script() + "x = ")
        for _ in range(3):
            stopped = eventually(unix.hub)
            os.kill(stopped, signal.SIGSTOP)
            asked = editor.inline(URI, 1, 4)
            os.kill(stopped, signal.SIGCONT)
            assert len(editor.result(asked)["items"]) == 1
            assert unix.hub() == stopped


@linux
def test_a_relay_that_is_stopped_along_with_its_editor_is_not_ended(unix: Place):
    control.lock_path(hub_address(unix.address)).mkdir()  # so that each editor's process relays itself
    with unix.editor(None, "--strict") as stopped, unix.editor(None, "--strict") as other:
        for editor in (stopped, other):
            editor.initialize()
            editor.open(URI, "text")
            editor.receive_all()
        stopped.process.send_signal(signal.SIGSTOP)
        time.sleep(3)  # six polls
        stopped.process.send_signal(signal.SIGCONT)
        assert stopped.text(URI) == other.text(URI) == "text"
    control.lock_path(hub_address(unix.address)).rmdir()


KILLS = int(os.environ.get("MERCURY_KILLS", "8"))
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


def kill_daemon(place: Place, typist: Typist) -> None:
    """End the daemon, and the engine's thread with it, as a crash does."""
    os.kill(place.pid(), signal.SIGKILL)


def pause(place: Place, typist: Typist) -> None:
    """Stop hub and daemon, one after the other, and let them go on after some keys."""
    for process in (place.hub(), (place.status() or {}).get("pid")):
        if process is not None:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
            for _ in range(10):
                typist.key()
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def kill_another_editor(place: Place, typist: Typist) -> None:
    """Another editor starts, and its server is killed while it types."""
    with Editor(command=place.command("--tireless"), env=place.env) as other:
        other.ask("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
        typist.key()
        other.process.kill()
        other.process.wait(PATIENCE)


LOSSES: list[Callable[[Place, Typist], object]] = [
    lambda place, _: kill_hub(place),
    lambda place, _: kill_hub(place),
    pause,
    kill_daemon,
    lambda place, _: kill_hub(place),
    kill_another_editor,
    kill_daemon,
    lambda place, _: kill_hub(place),
]
"""What happens while somebody types: one after the other, again and again."""


@linux
@pytest.mark.parametrize("journal_bytes", [2_000, 4 * 2**20], ids=["a short journal", "a long journal"])
def test_no_key_is_lost_and_no_request_answered_twice_while_hubs_and_daemons_are_killed(
    unix: Place, journal_bytes: int
):
    unix.env["MERCURY_TEST_JOURNAL_BYTES"] = str(journal_bytes)
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


@linux
def test_an_editor_that_left_while_its_hub_was_killed_leaves_nothing_behind(unix: Place):
    editor = unix.editor().initialize()
    editor.receive_all()
    kill_hub(unix)
    editor.process.stdin.close()
    assert editor.process.wait(PATIENCE) == 1
    editor.process.stdout.close()
    eventually(lambda: unix.hub() is None)


@linux
def test_a_hub_that_is_killed_again_and_again_ends_its_editors_servers_at_last(unix: Place):
    editor = unix.editor().initialize()
    while editor.process.poll() is None:
        if (hub := unix.hub()) is not None and connections(unix):
            os.kill(hub, signal.SIGKILL)
    assert editor.process.returncode == 1
    editor.__exit__(None)


# Where there is no hub


@pytest.fixture
def silent(unix: Place) -> Iterator[None]:
    """A hub that says nothing."""
    with hub_address(unix.address).listen()[0]:
        yield


def is_alone(place: Place, *options: str) -> None:
    """An editor's server relays by itself."""
    with place.editor(None, *options) as editor:
        editor.initialize()
        works(editor)
        assert place.hub() is None
    assert editor.process.returncode == 0


def test_beside_a_hub_that_says_nothing_an_editor_is_relayed_for_alone(unix: Place, silent: None):
    is_alone(unix, "--hasty")


def test_a_hub_of_another_build_is_not_used(unix: Place):
    with hub_address(unix.address).listen()[0] as listening, ThreadPoolExecutor() as pool:

        def greet() -> None:
            with listening.accept()[0] as caller:
                caller.sendall(handshake.encode({"mercury": 1, "build": "99.0"}))
                caller.recv(1)

        pool.submit(greet)
        is_alone(unix)


def test_where_no_hub_can_be_started_an_editor_is_relayed_for_alone(unix: Place):
    control.lock_path(hub_address(unix.address)).mkdir()
    with unix.editor() as editor:
        editor.initialize()
        works(editor)
        os.kill(unix.pid(), signal.SIGKILL)
        eventually(lambda: connections(unix) == 1)
        editor.process.stdin.close()
        assert editor.process.wait(PATIENCE) == 1


def test_without_a_shell_it_waits_itself(unix: Place):
    with unix.editor(None, "--no-shell") as editor:
        editor.initialize()
        works(editor)
        assert unix.hub() is not None
    assert editor.process.returncode == 0
    with unix.editor(None, "--no-shell") as editor:
        editor.initialize()
        editor.open(URI, "text")
        kill_hub(unix)
        assert text_after_all(editor) == "text"
        works(editor)
    assert editor.process.returncode == 0


def test_where_no_daemon_starts_each_editor_is_told_and_served_in_its_own_process(unix: Place):
    control.lock_path(unix.address).mkdir()
    with Editor(command=[*PLAIN, *unix.address.arguments], env=unix.env, stderr=subprocess.PIPE) as editor:
        editor.request("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
        assert unix.last_hub() is not None  # it has no editor and may have ended while this one's server started
    [line] = editor.process.stderr.read().decode().splitlines()
    editor.process.stderr.close()
    control.lock_path(unix.address).rmdir()
    assert "the daemon exited with code" in line and "serving in this process" in line


# How an editor starts it


def shell(script: str, *command: str) -> list[str]:
    """A command that a shell becomes once it has followed the script."""
    return ["/bin/sh", "-c", script, "sh", *command]


def test_an_editor_in_a_folder_that_was_removed_is_served_as_any_other(unix: Place, tmp_path: Path):
    removed = tmp_path / "removed"
    removed.mkdir()
    with Editor(command=shell('rmdir "$PWD" && exec "$@"', *unix.command()), env=unix.env, cwd=removed) as editor:
        editor.initialize()
        works(editor)
        assert unix.hub() is not None and not removed.exists()
    assert editor.process.returncode == 0


@linux
def test_who_waits_is_in_no_folder_of_the_editors(unix: Place, tmp_path: Path):
    unix.cwd = tmp_path
    with unix.editor() as editor:
        editor.initialize()
        eventually(lambda: os.readlink(f"/proc/{editor.process.pid}/cwd") == os.sep)


def test_an_editor_without_standard_error_is_served_as_any_other(unix: Place):
    with Editor(command=shell('exec "$@" 2>&-', *unix.command()), env=unix.env) as editor:
        editor.initialize()
        works(editor)
        assert unix.hub() is not None
    assert editor.process.returncode == 0


def test_where_no_daemon_starts_an_editor_without_standard_error_is_served_in_its_own_process(unix: Place):
    control.lock_path(unix.address).mkdir()
    command = shell('exec "$@" 2>&-', *PLAIN, *unix.address.arguments)
    with Editor(command=command, env=unix.env) as editor:
        editor.request("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    control.lock_path(unix.address).rmdir()
    assert editor.process.returncode == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("option", ["", "--in-process"])
def test_without_standard_input_or_output_it_ends_at_once(unix: Place, closed: str, option: str):
    command = shell(f'exec "$@" {option} {closed}', *PLAIN, *unix.address.arguments)
    ended = subprocess.run(command, env=unix.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ended.returncode == 1 and ended.stdout == ""
    told = "mercury-lsp: standard input or output is closed, so there is no client to serve\n"
    assert ended.stderr == ("" if "2>&-" in closed else told)
    assert unix.status() is None and unix.hub() is None


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


# The editor's end


@pytest.fixture
def handed() -> Iterator[tuple[HandedStdio, socket.socket, list[int]]]:
    """Stdio whose pipes' other ends are here: the waiter's end, and stdin, stdout, stderr as the editor has them."""
    (their_in, our_in), (our_out, their_out), (our_errors, their_errors) = os.pipe(), os.pipe(), os.pipe()
    waiter, hub = socket.socketpair()
    with waiter, hub, HandedStdio((their_in, their_out, their_errors), hub) as stdio:
        yield stdio, waiter, [our_in, our_out, our_errors]
    for each in (our_in, our_out, our_errors):
        os.close(each)


def test_a_session_that_is_given_up_says_why_in_its_own_editors_log(handed):
    stdio, _, (_, _, errors) = handed
    stdio.give_up("the reason")
    assert os.read(errors, 100) == b"the reason"
    assert stdio.read() == b""
    with pytest.raises(OSError):
        stdio.write(b"x")


def test_a_write_to_an_editor_that_does_not_read_ends_with_its_server(handed):
    stdio, waiter, _ = handed
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(stdio.write, b"x" * 10**6)
        waiter.close()
        with pytest.raises(BrokenPipeError):
            writing.result(PATIENCE)


def test_what_the_editors_server_says_to_the_hub_does_not_end_the_session(handed):
    stdio, waiter, (editor_in, editor_out, _) = handed
    waiter.sendall(b"sh: what a shell may complain of")
    os.write(editor_in, b"said")
    assert stdio.read() == b"said"
    stdio.write(b"answered")
    assert os.read(editor_out, 100) == b"answered"


def test_a_read_ends_with_the_editors_server(handed):
    stdio, waiter, (editor_in, _, _) = handed
    os.write(editor_in, b"said")
    assert stdio.read() == b"said"
    waiter.close()
    assert stdio.read() == b""
