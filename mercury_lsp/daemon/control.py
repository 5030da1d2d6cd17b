"""Requests to a running daemon: its status, and to stop."""

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
"""For a daemon to exit after it was asked to stop, or killed."""


def lock_path(address: Address) -> Path:
    """The file that an address's daemon keeps locked while it lives."""
    return address.path.with_name(f"{address.path.name}.lock")


def ask(address: Address, purpose: handshake.Purpose) -> dict[str, Any] | None:
    """The daemon's answer; None if none runs there. Raises DaemonError for one that we must not talk to."""
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


def _kill(address: Address) -> None:
    """Kill a daemon that does not answer."""
    try:
        if (process := lock.owner(lock_path(address))) is not None:
            os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    except ProcessLookupError:
        pass
    except OSError as error:
        raise DaemonError(f"the daemon at {address.path} does not answer and cannot be killed: {error}") from error
