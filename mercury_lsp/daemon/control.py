"""What others ask of a running daemon: how it is, and to end."""

import json
import time
from pathlib import Path
from typing import Any

from mercury_lsp.daemon import handshake, lock
from mercury_lsp.daemon.address import Address
from mercury_lsp.errors import DaemonError

ALREADY_RUNNING = 3
"""What `serve` ends with when another daemon has the address."""

STOP_SECONDS = 10.0


def lock_path(address: Address) -> Path:
    """Locked by the daemon of an address for as long as it lives."""
    return address.path.with_name(f"{address.path.name}.lock")


def ask(address: Address, purpose: handshake.Purpose) -> dict[str, Any] | None:
    """The daemon's answer; None if none runs there. Raises DaemonError for one that must not be talked to."""
    try:
        connection, key = address.connect()
        with connection:
            handshake.call(connection, key, purpose)
            connection.settimeout(handshake.SECONDS)
            return json.loads(handshake.read_line(connection))
    except (OSError, ValueError):
        return None


def stop(address: Address) -> bool:
    """End the daemon and wait until it is gone; False if none ran. Raises DaemonError if it does not end."""
    if ask(address, "stop") is None:
        return False
    deadline = time.monotonic() + STOP_SECONDS
    while lock.is_taken(lock_path(address)):
        if time.monotonic() > deadline:
            raise DaemonError(f"the daemon at {address.path} does not end; end its process")
        time.sleep(0.02)
    return True
