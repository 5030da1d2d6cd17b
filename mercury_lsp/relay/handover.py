"""From the process that an editor started to the hub, the one process that relays for all editors of an address.

    hub     {"mercury": 1, "build": ...}
    caller  {"folder": ..., "environment": ...}
    hub     {} once it has a daemon for this editor, or {"error": ...}
    caller  standard input, output and error, as descriptors
    hub     the exit code, when the session is over

Up to the descriptors the caller can still relay by itself. Behind them it becomes a shell that waits for its exit code.
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

LOOK_EVERY = 0.02

MAX_STARTS = 2
"""Of hubs that end before they say anything."""

ANSWER_SECONDS = 60.0
"""For the hub to join a daemon; `join` gives up before."""

SHELL = "/bin/sh"

WAIT = 'read -r code && exit "$code"; exit 1'
"""What the shell does, in 0.2 MB of memory where we take 13. When the hub dies it reads nothing."""


def hand_over(address: Address, serve: Sequence[str]) -> int | None:
    """Have the editor served by the hub, which is started if none runs; what to end with.

    None if no hub can be had; nothing was read or written then. Raises DaemonError if the hub can have no daemon.
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
    """What the hub says; if there is a shell, it waits in our place."""
    with open(os.devnull, "r+b", buffering=0) as nothing:  # an editor waits for the end of its pipes
        for ours, descriptor in ((hub, 0), (nothing, 1), (nothing, 2)):
            os.dup2(ours.fileno(), descriptor)
    with suppress(OSError):
        os.chdir(os.sep)  # ours may be removed, of which shells complain
        os.execve(SHELL, ["sh", "-c", WAIT, "mercury-lsp"], {})
    return int(hub.recv(16) or 1)


def _introduced(address: Address, serve: Sequence[str]) -> socket.socket:
    """A connection to a hub that has a daemon for us. Raises OSError and DaemonError."""
    hub = _reach(address, serve)
    try:
        hub.sendall(handshake.encode(EditorOrigin.here()._asdict()))
        hub.settimeout(ANSWER_SECONDS)
        said = _said(hub)
        if "error" in said:
            raise DaemonError(said["error"])
        hub.settimeout(None)  # with a timeout it does not block, and the shell would not wait
    except BaseException:
        hub.close()
        raise
    return hub


def _reach(address: Address, serve: Sequence[str]) -> socket.socket:
    """A connection to a hub that is alive and of our build. Raises OSError."""
    deadline, starts = time.monotonic() + handshake.SECONDS, 0
    while time.monotonic() < deadline and starts <= MAX_STARTS:
        # One that is about to end hangs up on whoever comes.
        with suppress(FileNotFoundError, ConnectionError, handshake.NoDaemon):
            return _call(hub_address(address))
        if _start(address, serve):
            starts += 1
        else:
            time.sleep(LOOK_EVERY)
    raise TimeoutError("no hub answers")


def _call(address: UnixAddress) -> socket.socket:
    hub, _ = address.connect()
    try:
        hub.settimeout(handshake.SECONDS)
        if (theirs := _said(hub).get("build")) != build():
            raise OSError(f"the hub is of build {theirs}")
    except BaseException:
        hub.close()
        raise
    return hub


def _said(hub: socket.socket) -> dict[str, Any]:
    """Raises OSError."""
    try:
        return handshake.decode(handshake.read_line(hub))
    except ValueError as error:
        raise OSError(str(error)) from error


def _start(address: Address, serve: Sequence[str]) -> bool:
    """Start a hub, unless another has just been; it listens when this returns. Raises OSError."""
    hub = hub_address(address)
    if (taken := lock.take(control.lock_path(hub))) is None:
        return False
    try:
        listening, _ = hub.listen()
        with listening:
            if (child := os.fork()) == 0:
                _be_hub(address, serve, listening, taken)
            with suppress(ChildProcessError):  # where ended children are not kept
                os.waitpid(child, 0)
    except DaemonError as error:
        raise OSError(str(error)) from error
    finally:
        os.close(taken)
    return True


def _be_hub(address: Address, serve: Sequence[str], listening: socket.socket, taken: int) -> NoReturn:
    """In a process that is nobody's child: some editors end a server with all its children."""
    try:
        _leave_terminal()
        if os.fork() == 0:
            from mercury_lsp.relay import hub

            hub.run(address, serve, listening, taken)
    finally:
        os._exit(0)


def _leave_terminal() -> None:
    """What ends those at the terminal is not for the hub, nor may it be stopped for reading from one it was handed.

    Not setsid: Linux lets sessions take turns, and on busy processors a keystroke took up to five times as long.
    """
    import fcntl
    import termios

    os.setpgid(0, 0)
    with suppress(OSError), open("/dev/tty", "r+b", buffering=0) as terminal:  # there may be none
        fcntl.ioctl(terminal, termios.TIOCNOTTY)
