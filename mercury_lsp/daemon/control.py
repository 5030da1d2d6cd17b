"""Requests to a running daemon: for its status, and to stop it."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from mercury_lsp.daemon import handshake, lock
from mercury_lsp.daemon.address import Address
from mercury_lsp.errors import DaemonError

ALREADY_RUNNING = 3
"""The exit code of `serve` when another daemon has the address."""

STOP_SECONDS = 10.0
"""Longest wait for a daemon to exit after a request to stop, or after it was killed."""

KILL_SECONDS = 2.0
"""Longest wait for a killed daemon to be gone; one that waits for a stalled disk stays."""

ON_DEMAND = "on-demand"
"""Signature of a daemon that an editor's relay started and that may be ended for another."""


def lock_path(address: Address) -> Path:
    """The file that an address's daemon keeps locked while it lives."""
    return address.path.with_name(f"{address.path.name}.lock")


def ask(address: Address, purpose: handshake.Purpose) -> dict[str, Any] | None:
    """The daemon's answer; None if none runs there. Raises DaemonError if we must not talk to it."""
    try:
        connection, key = address.connect()
        with connection:
            handshake.call(connection, key, purpose)
            connection.settimeout(handshake.TIMEOUT_SECONDS)
            return json.loads(handshake.read_line(connection))
    except (OSError, ValueError):
        return None


def stop(address: Address) -> bool:
    """Stop the daemon and wait until it is gone; False if none ran. A daemon that does not answer is killed.

    Raises DaemonError if it does not exit.
    """
    if ask(address, "stop") is None:
        if not lock.is_taken(lock_path(address)):
            return False
        _kill(address)
    deadline = time.monotonic() + STOP_SECONDS
    while lock.is_taken(lock_path(address)):
        if time.monotonic() > deadline:
            raise DaemonError(f"the daemon at {address.path} does not exit; kill its process")
        time.sleep(0.02)
    return True


def replace(address: Address) -> None:
    """Make room for another daemon in place of one that does not answer.

    It is killed if it was started on demand. If it cannot be killed, or was started by hand, it loses the address: a
    new daemon creates a lock file of its own. Call it with the lock for starting held. Raises DaemonError.
    """
    path = lock_path(address)
    try:
        process, note = lock.signature(path)
        if process is not None and note == ON_DEMAND:
            _kill(address)
            deadline = time.monotonic() + KILL_SECONDS
            while lock.is_taken(path) and time.monotonic() < deadline:
                time.sleep(0.02)
        if lock.is_taken(path):
            path.unlink(missing_ok=True)
        address.path.unlink(missing_ok=True)
    except OSError as error:
        raise DaemonError(
            f"the daemon at {address.path} does not answer and cannot be replaced ({error}); kill its process"
        ) from error


def _kill(address: Address) -> None:
    try:
        if (process := lock.signature(lock_path(address))[0]) is not None:
            os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    except ProcessLookupError:
        pass
    except OSError as error:
        raise DaemonError(f"the daemon at {address.path} does not answer and cannot be killed: {error}") from error
