"""One process for many editors: shared engines, who may come in, and when it ends."""

import asyncio
import json
import socket
import stat
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

import mercury_lsp
from mercury_lsp.commands import doctor
from mercury_lsp.daemon import address, control, server
from mercury_lsp.daemon.address import TcpAddress, UnixAddress
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay import join, link
from tests.support.editor import PATIENCE, Editor, frame, script
from tests.support.sharing import Place

URI = "file:///sample.py"

SECRET = "file:///secret.py"


def asks(editor: Editor) -> list[str]:
    return [item["insertText"] for item in editor.items(URI, 1, 4)]


def test_two_editors_share_one_load_and_nothing_else(place: Place):
    with place.editor() as one, place.editor() as other:
        for editor, text in ((one, "first"), (other, "second")):
            editor.initialize()
            editor.open(URI, script(text=text) + "x = ")
        assert (asks(one), asks(other)) == (["first"], ["second"])
        assert len(place.loaded()) == 1
        one.open(SECRET, "x")
        assert other.text(SECRET) is None
        status = place.status()
        assert status is not None and status["connections"] == 2
        assert status["engines"] == [{"name": "fake", "device": "cpu", "connections": 2}]


def test_one_editors_warnings_are_not_for_another_to_read(unix: Place):
    with unix.editor() as one, unix.editor() as other:
        one.initialize()
        other.initialize()
        one.notify("textDocument/didClose", {"textDocument": {"uri": SECRET}})
        one.until(lambda: any(SECRET in str(told) for told in one.received("window/logMessage")))
        other.receive_all()
        assert not any(SECRET in str(told) for told in other.received("window/logMessage"))


def test_the_log_on_disk_holds_no_values(unix: Place, tmp_path: Path):
    with unix.editor() as editor:
        editor.initialize()
        editor.notify("textDocument/didClose", {"textDocument": {"uri": SECRET}})
        editor.until(lambda: any(SECRET in str(told) for told in editor.received("window/logMessage")))
        [log] = (tmp_path / "state" / "mercury-lsp").iterdir()
        assert "WARNING" in log.read_text() and SECRET not in log.read_text()


def test_the_doctor_tells_of_the_daemons_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert doctor._daemons() == "none is running; the next editor starts one"
    place = Place(tmp_path, address.default_address())
    try:
        place.daemon()
        told = f"process {place.pid()} of version {mercury_lsp.__version__}, 0 editors, no model"
        assert doctor._daemons().startswith(told)
        with place.editor() as editor:
            editor.initialize()
            editor.open(URI, script() + "x = ")
            asks(editor)
            assert "1 editor, fake on cpu" in doctor._daemons()
    finally:
        place.close()


# Who may come in


def test_the_socket_is_its_owners_alone(unix: Place):
    unix.daemon()
    assert stat.S_IMODE(unix.address.path.stat().st_mode) == 0o600


def test_the_token_is_its_owners_alone_and_new_every_time(tcp: Place):
    seen = set()
    for _ in range(2):
        tcp.daemon()
        port, token = tcp.address.path.read_text().split()
        assert stat.S_IMODE(tcp.address.path.stat().st_mode) == 0o600 and len(bytes.fromhex(token)) == 32
        seen.add(token)
        with pytest.raises(OSError):
            socket.create_connection((own_address(), int(port)), timeout=1)
        control.stop(tcp.address)
    assert len(seen) == 2


def own_address() -> str:
    """An address of this machine that is not the loopback interface's usual one."""
    return "127.0.0.2"


def test_a_wrong_token_is_hung_up_on(tcp: Place):
    tcp.daemon()
    port, token = tcp.address.path.read_text().split()
    with socket.create_connection(("127.0.0.1", int(port)), timeout=PATIENCE) as caller:
        hello = {"mercury": 1, "version": mercury_lsp.__version__, "purpose": "status", "nonce": "n"}
        caller.sendall(control.encode(hello))
        said = control.decode(control.read_line(caller))
        assert control.is_proof(said["proof"], bytes.fromhex(token), "daemon", "n")
        caller.sendall(control.encode({"proof": control.proof(bytes(32), "caller", said["nonce"])}))
        assert caller.recv(1) == b""


@pytest.mark.parametrize("noise", [b"\n", b"GET / HTTP/1.1\r\n\r\n", b"[]\n", b"x" * 100_000, b'{"mercury": 99}\n'])
def test_noise_instead_of_a_hello_is_hung_up_on(unix: Place, noise: bytes):
    unix.daemon()
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(PATIENCE)
        caller.connect(str(unix.address.path))
        try:
            caller.sendall(noise)
            assert caller.recv(1) == b""
        except ConnectionError:
            pass
    assert unix.status() is not None


def test_another_users_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert stat.S_IMODE(address.runtime_folder().stat().st_mode) == 0o700
    (tmp_path / "mercury-lsp").chmod(0o750)
    with pytest.raises(DaemonError, match="not a private folder of yours"):
        address.runtime_folder()
    (tmp_path / "mercury-lsp").rmdir()
    (tmp_path / "mercury-lsp").symlink_to(tmp_path)
    with pytest.raises(DaemonError, match="not a private folder of yours"):
        address.runtime_folder()


def test_on_windows_it_is_the_loopback_interface_with_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(address.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    found = address.default_address()
    assert isinstance(found, TcpAddress) and found.port == 0
    assert found.path.parent == tmp_path / "mercury-lsp" and found.path.suffix == ".token"
    assert address.log_file(found).is_relative_to(tmp_path)


# Versions


def test_a_daemon_of_another_version_is_not_talked_to(unix: Place, monkeypatch: pytest.MonkeyPatch):
    unix.daemon()
    monkeypatch.setattr(mercury_lsp, "__version__", "99.0")
    with pytest.raises(DaemonError, match="a daemon of version"):
        join.connect(unix.address)
    assert unix.status() is not None  # but it can be asked, and stopped


# Beginning and end


def test_only_one_daemon_has_an_address(unix: Place):
    unix.daemon()
    command = [sys.executable, "-m", "mercury_lsp", "serve", *unix.address.arguments]
    second = subprocess.run(command, env=unix.env, capture_output=True, text=True)
    assert second.returncode == control.ALREADY_RUNNING and "already running" in second.stderr
    assert unix.status() is not None


def test_what_a_crashed_daemon_left_is_taken_over(place: Place):
    crashed = place.daemon()
    crashed.kill()
    crashed.wait()
    assert place.address.path.exists() and place.status() is None
    assert place.daemon().poll() is None


def test_it_stays_while_somebody_is_there_and_ends_after_the_last(unix: Place):
    for idle_seconds in (1.2, 12.0, PATIENCE):  # on a busy machine the editor may come too late for the first
        daemon = unix.daemon("--idle-exit", str(idle_seconds / 60))
        with unix.editor() as editor:
            editor.initialize()
            if has_come := unix.pid() == daemon.pid:
                with pytest.raises(subprocess.TimeoutExpired):
                    daemon.wait(idle_seconds + 0.8)
        if has_come:
            break
        control.stop(unix.address)  # the one that the editor started
    assert has_come and daemon.wait(PATIENCE) == 0


@pytest.mark.parametrize("model", [None, "stuck"])
def test_it_can_be_stopped(place: Place, model: str | None):
    daemon = place.daemon()
    with place.editor() as editor:
        editor.initialize(options={"model": model})
        command = [sys.executable, "-m", "mercury_lsp", "serve", "--stop", *place.address.arguments]
        assert subprocess.run(command, env=place.env, check=True, capture_output=True).stderr == b"stopped\n"
        assert daemon.wait(PATIENCE) == 0
        assert place.status() is None  # nobody hurries to start another
        assert not place.address.path.exists()
        again = subprocess.run(command, env=place.env, check=True, capture_output=True)
        assert again.stderr == b"none was running\n"


def test_a_path_too_long_for_a_socket_is_an_error_that_names_the_mend(tmp_path: Path):
    with pytest.raises(DaemonError, match="--socket"):
        UnixAddress(tmp_path / ("x" * 120)).listen()


async def test_while_ten_thousand_documents_are_opened_the_relay_gets_a_sign_of_life_every_second(
    monkeypatch: pytest.MonkeyPatch,
):
    clock, signs = 0.0, [0.0]
    monkeypatch.setattr(server, "monotonic", lambda: clock)

    class Writer:
        def write(self, data: bytes) -> None:
            assert data == server.PONG
            signs.append(clock)

    reader = asyncio.StreamReader(limit=2**24)
    for number in range(10_000):
        document = {"uri": f"file:///{number}.py", "languageId": "python", "version": 1, "text": "x"}
        reader.feed_data(frame({"method": "textDocument/didOpen", "params": {"textDocument": document}}))
    reader.feed_data(frame({"method": control.PING}))  # is answered behind them
    reader.feed_eof()
    count = 0
    async for _ in server._messages(reader, Writer()):  # type: ignore[arg-type]
        count, clock = count + 1, clock + 0.004  # what opening one takes on a busy machine
    assert count == 10_000 and clock > 3 * link.POLL_SECONDS * link.POLLS_BEFORE_LOSS
    assert max(later - earlier for earlier, later in pairwise(signs)) < server.SIGN_OF_LIFE_SECONDS + 0.01
    assert server.SIGN_OF_LIFE_SECONDS < link.POLL_SECONDS


def test_before_the_daemon_has_proved_itself_it_hears_neither_the_token_nor_anything_of_ours(tmp_path: Path):
    """To a listener that took over a port, and answers a hello with one of its own."""
    token = bytes(range(32))
    heard = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (tmp_path / "token").write_text(f"{listener.getsockname()[1]} {token.hex()}")

        def impostor() -> None:
            connection = listener.accept()[0]
            with connection:
                connection.settimeout(PATIENCE)
                heard.extend(connection.recv(65_536))
                connection.sendall(json.dumps({"mercury": 1, "nonce": "n", "proof": "00" * 32}).encode() + b"\n")
                while part := connection.recv(65_536):
                    heard.extend(part)

        thread = threading.Thread(target=impostor, daemon=True)
        thread.start()
        with pytest.raises(DaemonError):
            join.connect(TcpAddress(tmp_path / "token"))
        thread.join(PATIENCE)
    assert set(json.loads(heard)) == {"mercury", "version", "purpose", "nonce"}
    assert token not in heard and token.hex().encode() not in heard
