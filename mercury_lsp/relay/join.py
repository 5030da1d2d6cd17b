"""Finds the daemon, or starts it."""

import os
import socket
import sys
import time
from collections.abc import Sequence
from threading import Thread
from typing import TYPE_CHECKING, BinaryIO

from mercury_lsp import private_files
from mercury_lsp.daemon import control
from mercury_lsp.daemon.address import Address, log_file
from mercury_lsp.daemon.control import ALREADY_RUNNING
from mercury_lsp.errors import DaemonError, SilentDaemon

if TYPE_CHECKING:
    import subprocess

START_SECONDS = 30.0
"""Longest wait for a new daemon to listen and complete the handshake; it loads neither torch nor a model before."""

POLL_SECONDS = 0.02
"""Pause between two attempts to connect."""

CALL_SECONDS = 1.5
"""Longest wait for a daemon's answer to a call."""

MAX_SILENT_CALLS = 4
"""Unanswered calls after which a listening daemon is replaced: 6 seconds, so that another one serves within 10. After a
link was lost to silence, a single one is enough."""

IDLE_MINUTES = 10
"""Minutes without an editor after which a daemon started on demand ends."""

MAX_LOG_BYTES = 2**20
"""A longer log is emptied when the next daemon starts."""

DETACHED = 0x00000208 if sys.platform == "win32" else 0
"""DETACHED_PROCESS and CREATE_NEW_PROCESS_GROUP, the equivalent of start_new_session."""

SERVE_COMMAND = (sys.executable, "-P", "-m", "mercury_lsp", "serve", "--idle-exit", str(IDLE_MINUTES))
"""Starts a daemon at the address that is appended. -P keeps the working folder out of the import path."""


def join(address: Address, serve: Sequence[str] = SERVE_COMMAND, after_hang: bool = False) -> socket.socket:
    """A connection ready for LSP; starts a daemon if none runs or the running one hangs. Raises DaemonError.

    If several processes call this, one starts the daemon and the others wait. `after_hang`: the last daemon hung.
    """
    deadline = time.monotonic() + START_SECONDS
    silent_calls = MAX_SILENT_CALLS - 1 if after_hang else 0
    daemon: subprocess.Popen[bytes] | None = None
    turn: int | None = None
    try:
        if after_hang:  # whatever was found before the lock was taken is out of date
            turn = take_turn(address)
        while time.monotonic() < deadline:
            try:
                if (connection := connect(address)) is not None:
                    return connection
                silent_calls = 0
            except SilentDaemon:  # the first calls may reach a daemon that is starting
                silent_calls += 1
            if turn is None:
                turn = take_turn(address)
            elif silent_calls >= MAX_SILENT_CALLS and daemon is None:  # ours is still starting
                control.replace(address)
            elif not silent_calls:  # only after another call, because the lock's last owner may have started one
                daemon = _keep_starting(daemon, address, serve)
            time.sleep(POLL_SECONDS)
    except OSError as error:
        raise DaemonError(f"the daemon cannot be started: {error}") from error
    finally:
        if turn is not None:
            os.close(turn)
    raise DaemonError(f"no daemon answers at {address.path}; its log: {log_name(address)}")


def take_turn(address: Address) -> int | None:
    """The lock for starting a daemon; None while another process has it. Raises OSError."""
    return private_files.take_lock(address.path.with_name(f"{address.path.name}.start"))


def _keep_starting(
    daemon: "subprocess.Popen[bytes] | None", address: Address, serve: Sequence[str]
) -> "subprocess.Popen[bytes]":
    ended = daemon.poll() if daemon is not None else None
    if daemon is None or ended == ALREADY_RUNNING:  # the running daemon was about to end
        return start(address, serve)
    if ended is not None:
        raise DaemonError(f"the daemon exited with code {ended}; its log says why: {log_name(address)}")
    return daemon


def connect(address: Address) -> socket.socket | None:
    """A connection to the running daemon; None if none runs.

    Raises SilentDaemon if the daemon does not answer, and DaemonError if we must not talk to it.
    """
    try:
        return control.call(address, "lsp", CALL_SECONDS)
    except PermissionError as error:
        raise DaemonError(str(error)) from error
    except (TimeoutError, BlockingIOError) as error:  # it hangs, or too many callers are waiting
        fix = "stop it with mercury-lsp serve --stop"
        raise SilentDaemon(f"the daemon at {address.path} does not answer; {fix}") from error
    except OSError:
        return None


def start(address: Address, serve: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start a daemon that outlives this process; one that ends earlier is reaped. Raises OSError."""
    import subprocess  # half a MB, needed by the first editor's relay only

    with open_log(address) as log:
        daemon = subprocess.Popen(
            [*serve, *address.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=address.path.parent,  # the editor's folder may be removed or unmounted
            start_new_session=True,
            creationflags=DETACHED,
        )
    Thread(target=daemon.wait, name="mercury-reaper", daemon=True).start()
    return daemon


def log_name(address: Address) -> str:
    """The path of the daemon's log, for messages."""
    try:
        return str(log_file(address))
    except (OSError, RuntimeError):  # there is no home folder
        return "nowhere"


def open_log(address: Address) -> BinaryIO:
    """The daemon's log, emptied if it is too long; the null device if there is no private folder for it."""
    try:
        log = os.fdopen(private_files.opened(log_file(address), os.O_WRONLY | os.O_APPEND), "ab")
        if os.fstat(log.fileno()).st_size > MAX_LOG_BYTES:
            os.ftruncate(log.fileno(), 0)
        return log
    except PermissionError as error:
        sys.stderr.write(f"mercury-lsp: nothing is logged: {error}\n")
    except (OSError, RuntimeError):
        pass
    return open(os.devnull, "wb")
