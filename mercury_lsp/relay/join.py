"""Finding the daemon, or starting it."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from threading import Thread
from typing import BinaryIO

from mercury_lsp.daemon import handshake, lock
from mercury_lsp.daemon.address import Address, log_file
from mercury_lsp.daemon.control import ALREADY_RUNNING
from mercury_lsp.errors import DaemonError, SilentDaemon
from mercury_lsp.relay.origin import EditorOrigin

START_SECONDS = 30.0
"""For a daemon to listen and say its hello; it imports neither torch nor a model before that."""

LOOK_EVERY = 0.02

SILENCES = 3
"""Calls without an answer, each of `handshake.SECONDS`, after which a daemon that listens is taken to hang, and not to
start slowly. Editors wait 20 seconds for a server and longer."""

IDLE_MINUTES = 10
"""A daemon that was started on demand ends when no editor was there for so long."""

MAX_LOG = 2**20


DETACHED = 0x00000208 if sys.platform == "win32" else 0
"""DETACHED_PROCESS and CREATE_NEW_PROCESS_GROUP: what start_new_session does elsewhere."""

SERVE = (sys.executable, "-P", "-m", "mercury_lsp", "serve", "--idle-exit", str(IDLE_MINUTES))
"""Starts a daemon, its address behind it. -P: the working folder must not decide what is imported."""


def join(address: Address, serve: Sequence[str] = SERVE, origin: EditorOrigin | None = None) -> socket.socket:
    """A connection on which LSP may be spoken; the daemon is started if none runs. Raises DaemonError.

    Of several who find none only one starts it, and the others wait. The origin is the caller's if it is not ours.
    """
    deadline = time.monotonic() + START_SECONDS
    origin = origin or EditorOrigin.here()
    call = _Caller(address, origin)
    starting: int | None = None
    daemon: subprocess.Popen[bytes] | None = None
    try:
        while (connection := call()) is None:
            if time.monotonic() > deadline:
                raise DaemonError(f"no daemon answers at {address.path}; its log: {log_name(address)}")
            if starting is None:
                starting = lock.take(address.path.with_name(f"{address.path.name}.start"))
            elif not call.silences:  # not before another call, for who had the lock may have started one
                daemon = _keep_starting(daemon, address, serve, origin)
            time.sleep(LOOK_EVERY)
    except OSError as error:
        raise DaemonError(f"the daemon cannot be started: {error}") from error
    finally:
        if starting is not None:
            os.close(starting)
    return connection


class _Caller:
    """Calls again and again, but not somebody who never answers."""

    def __init__(self, address: Address, origin: EditorOrigin):
        self.silences = 0
        """Of the last calls."""
        self._address = address
        self._origin = origin

    def __call__(self) -> socket.socket | None:
        """As `connect`; the first silences may be those of a daemon that is starting."""
        try:
            connection = connect(self._address, self._origin.folder)
        except SilentDaemon:
            self.silences += 1
            if self.silences >= SILENCES:
                raise
            return None
        self.silences = 0
        return connection


def _keep_starting(
    daemon: "subprocess.Popen[bytes] | None", address: Address, serve: Sequence[str], origin: EditorOrigin
) -> "subprocess.Popen[bytes]":
    ended = daemon.poll() if daemon is not None else None
    if daemon is None or ended == ALREADY_RUNNING:  # the one that ran was about to end
        return start(address, serve, origin)
    if ended is not None:
        raise DaemonError(f"the daemon ended with code {ended}; its log says why: {log_name(address)}")
    return daemon


def connect(address: Address, folder: str | None = None) -> socket.socket | None:
    """A connection to the daemon that runs, for an editor in our folder or another; None if none does.

    Raises SilentDaemon for one that does not answer, and DaemonError for one that we must not talk to.
    """
    try:
        connection, key = address.connect()
    except PermissionError as error:
        raise DaemonError(str(error)) from error
    except (TimeoutError, BlockingIOError) as error:  # too many wait to be let in
        raise _silent(address) from error
    except OSError:
        return None
    try:
        handshake.call(connection, key, "lsp", folder)
    except handshake.NoAnswer as error:
        connection.close()
        raise _silent(address) from error
    except handshake.NoDaemon:
        connection.close()
        return None
    except DaemonError:
        connection.close()
        raise
    return connection


def _silent(address: Address) -> SilentDaemon:
    return SilentDaemon(f"the daemon at {address.path} does not answer; mercury-lsp serve --stop ends it")


def start(address: Address, serve: Sequence[str], origin: EditorOrigin) -> "subprocess.Popen[bytes]":
    """Start a daemon that outlives us, and is no zombie if it does not. Raises OSError."""
    with open_log(address) as log:
        daemon = subprocess.Popen(
            [*serve, *address.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=address.path.parent,  # the editor's may be removed, or unmounted
            env=origin.environment,
            start_new_session=True,
            creationflags=DETACHED,
        )
    Thread(target=daemon.wait, name="mercury-reaper", daemon=True).start()
    return daemon


def log_name(address: Address) -> str:
    """Where to look for the daemon's last words."""
    try:
        return str(log_file(address))
    except (OSError, RuntimeError):  # there is no home folder
        return "nowhere"


def open_log(address: Address) -> BinaryIO:
    """Begun anew when it has become long; the null device where there is no place for a log."""
    try:
        path = log_file(address)
        mode = os.O_TRUNC if path.exists() and path.stat().st_size > MAX_LOG else 0
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | mode, 0o600), "ab")
    except (OSError, RuntimeError):
        return open(os.devnull, "wb")
