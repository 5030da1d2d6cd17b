"""Hand an editor over from the process that it started to the hub, which relays for all editors of an address.

    hub     {"mercury": 1, "build": ...}
    caller  {"folder": ..., "environment": ...}
    hub     {} once it has a daemon for this editor, or {"error": ...}
    caller  standard input, output and error, as descriptors
    hub     the exit code, when the session is over

Until it sends the descriptors, the caller can still relay by itself. Then it becomes a shell that waits for the exit
code.
"""

import os
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from mercury_lsp.daemon import control, handshake, lock
from mercury_lsp.daemon.address import Address, UnixAddress, build, hub_address
from mercury_lsp.errors import DaemonError
from mercury_lsp.relay.origin import EditorOrigin

POLL_SECONDS = 0.02
"""Between two attempts to reach a hub that another process is starting."""

MAX_HUB_STARTS = 2
"""Hubs that may end before they answer, before we give up."""

HUB_ANSWER_SECONDS = 60.0
"""For the hub to join a daemon; `join` gives up sooner."""

SHELL = "/bin/sh"

WAIT_SCRIPT = 'read -r code && exit "$code"; exit 1'
"""The shell's script; it takes 0.2 MB of memory, this process 13. If the hub dies, the shell reads end of file."""


def hand_over(address: Address, serve: Sequence[str]) -> int | None:
    """Have the hub serve the editor; the exit code. The hub is started if none runs.

    None if there can be no hub; then nothing was read or written. Raises DaemonError if the hub finds no daemon.
    """
    if sys.platform == "win32":
        return None
    try:
        hub = _introduced(address, serve)
    except OSError:
        return None
    with hub:
        try:
            socket.send_fds(hub, [b"\n"], [0, 1, 2])
        except OSError:
            return None
        return _wait(hub)


def _wait(hub: socket.socket) -> int:
    """The exit code that the hub sends; if there is a shell, it replaces this process to wait."""
    with open(os.devnull, "r+b", buffering=0) as nothing:  # our copies would keep the editor's pipes open
        for ours, descriptor in ((hub, 0), (nothing, 1), (nothing, 2)):
            os.dup2(ours.fileno(), descriptor)
    with suppress(OSError):
        os.chdir(os.sep)  # shells complain if their folder is removed
        os.execve(SHELL, ["sh", "-c", WAIT_SCRIPT, "mercury-lsp"], {})
    return int(hub.recv(16) or 1)


def _introduced(address: Address, serve: Sequence[str]) -> socket.socket:
    """A connection to a hub that has a daemon for us. Raises OSError and DaemonError."""
    hub = _reach(address, serve)
    try:
        hub.sendall(handshake.encode(EditorOrigin.here()._asdict()))
        hub.settimeout(HUB_ANSWER_SECONDS)
        said = _receive(hub)
        if "error" in said:
            raise DaemonError(said["error"])
        hub.settimeout(None)  # with a timeout it is non-blocking, and the shell would not wait
    except BaseException:
        hub.close()
        raise
    return hub


def _reach(address: Address, serve: Sequence[str]) -> socket.socket:
    """A connection to a hub that is alive and of our build. Raises OSError."""
    deadline, starts = time.monotonic() + handshake.TIMEOUT_SECONDS, 0
    while time.monotonic() < deadline and starts <= MAX_HUB_STARTS:
        # A hub that is about to end hangs up on new callers.
        with suppress(FileNotFoundError, ConnectionError, handshake.NoDaemon):
            return _call(hub_address(address))
        if _start(address, serve):
            starts += 1
        else:
            time.sleep(POLL_SECONDS)
    raise TimeoutError("no hub answers")


def _call(address: UnixAddress) -> socket.socket:
    hub, _ = address.connect()
    try:
        hub.settimeout(handshake.TIMEOUT_SECONDS)
        if (theirs := _receive(hub).get("build")) != build():
            raise OSError(f"the hub is of build {theirs}")
    except BaseException:
        hub.close()
        raise
    return hub


def _receive(hub: socket.socket) -> dict[str, Any]:
    """The hub's next message. Raises OSError."""
    try:
        return handshake.decode(handshake.read_line(hub))
    except ValueError as error:
        raise OSError(str(error)) from error


def _start(address: Address, serve: Sequence[str]) -> bool:
    """Start a hub; False if another process is running or starting one. It listens on return. Raises OSError."""
    hub = hub_address(address)
    if (taken := lock.take(control.lock_path(hub))) is None:
        return False
    try:
        listening, _ = hub.listen()
        with listening:
            if (child := os.fork()) == 0:
                _be_hub(address, serve, listening, taken)
            with suppress(ChildProcessError):  # if children are reaped automatically
                os.waitpid(child, 0)
    except DaemonError as error:
        raise OSError(str(error)) from error
    finally:
        os.close(taken)
    return True


def _be_hub(address: Address, serve: Sequence[str], listening: socket.socket, taken: int) -> NoReturn:
    """Run the hub as an orphan: some editors kill a server with all its children."""
    try:
        _leave_terminal()
        if os.fork() == 0:
            from mercury_lsp.relay import hub

            hub.run(address, serve, listening, taken)
    finally:
        os._exit(0)


def _leave_terminal() -> None:
    """Leave the terminal: its signals must not end the hub, or stop it for reading from a terminal it was handed.

    Not by setsid: Linux schedules sessions in turn, and a keystroke on busy processors took up to five times as long.
    """
    import fcntl
    import termios

    os.setpgid(0, 0)
    with suppress(OSError), open("/dev/tty", "r+b", buffering=0) as terminal:  # there may be none
        fcntl.ioctl(terminal, termios.TIOCNOTTY)
