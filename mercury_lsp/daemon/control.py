"""Talks to a running daemon: to use it, for its status, and to stop it.

Each connection begins with a handshake, in which each side sends lines of JSON:

    caller  {"mercury": 1, "version": ..., "purpose": "lsp", "nonce": ...}
    daemon  {"mercury": 1, "version": ..., "pid": ..., "nonce": ..., "proof": HMAC(token, "daemon" + caller's nonce)}
    caller  {"proof": HMAC(token, "caller" + daemon's nonce)}

The token itself is never sent, so a process that took over a dead daemon's port learns nothing and gets none of the
user's text. A connection whose handshake fails is closed without a reply. On a Unix socket token and proofs are empty:
the file system and the peer's credentials decide who may connect.
"""

import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any, Literal

import mercury_lsp
from mercury_lsp import private_files
from mercury_lsp.daemon.address import Address, is_same_user
from mercury_lsp.errors import DaemonError

PROTOCOL_VERSION = 1
"""Version of this handshake and of the messages between relay and daemon that are not LSP."""

MAX_LINE_BYTES = 4096

TIMEOUT_SECONDS = 5.0
"""Longest wait for the other side's lines."""

PING, PONG = "mercury/ping", "mercury/pong"
"""The relay's notification to check that the daemon is alive, and the immediate answer."""

GOODBYE = "mercury/goodbye"
"""The daemon's notification that it was stopped, so that relays do not start another at once."""

Purpose = Literal["lsp", "status", "stop"]

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


def call(address: Address, purpose: Purpose, seconds: float = TIMEOUT_SECONDS) -> socket.socket:
    """A connection to the daemon at an address, after the handshake.

    Raises TimeoutError if it sends nothing for that long, PermissionError if it is another user's, OSError if there is
    none, or it hangs up or does not know this handshake, and DaemonError if we must not talk to it.
    """
    connection, key = address.connect()
    try:
        if not is_same_user(connection):
            raise PermissionError(f"{address.path} belongs to another user")
        connection.settimeout(seconds)
        _introduce(connection, key, purpose)
        connection.settimeout(None)
    except BaseException:
        connection.close()
        raise
    return connection


def _introduce(connection: socket.socket, key: bytes, purpose: Purpose) -> None:
    nonce = new_nonce()
    hello = {"mercury": PROTOCOL_VERSION, "version": mercury_lsp.__version__, "purpose": purpose}
    connection.sendall(encode(hello | {"nonce": nonce}))
    try:
        said = decode(read_line(connection))
    except ValueError as error:
        raise OSError(str(error)) from error
    if not is_proof(said.get("proof"), key, "daemon", nonce):
        raise DaemonError("the listening process does not know the token; remove the token file")
    if purpose == "lsp" and said.get("version") != hello["version"]:
        raise DaemonError(
            f"a daemon of version {said.get('version')} runs there; stop it with mercury-lsp serve --stop"
        )
    connection.sendall(encode({"proof": proof(key, "caller", str(said.get("nonce")))}))


def ask(address: Address, purpose: Purpose) -> dict[str, Any] | None:
    """The daemon's answer; None if none runs there. Raises DaemonError if we must not talk to it."""
    try:
        with call(address, purpose) as connection:
            connection.settimeout(TIMEOUT_SECONDS)
            return json.loads(read_line(connection))
    except (OSError, ValueError):
        return None


def stop(address: Address) -> bool:
    """Stop the daemon and wait until it is gone; False if none ran. A daemon that does not answer is killed.

    Raises DaemonError if it does not exit.
    """
    if ask(address, "stop") is None:
        if not private_files.is_locked(lock_path(address)):
            return False
        _kill(address)
    if not _is_gone(address, STOP_SECONDS):
        raise DaemonError(f"the daemon at {address.path} does not exit; kill its process")
    return True


def replace(address: Address) -> None:
    """Make room for another daemon in place of one that does not answer.

    It is killed if it was started on demand. If it cannot be killed, or was started by hand, it loses the address: a
    new daemon creates a lock file of its own. Call it with the lock for starting held. Raises DaemonError.
    """
    path = lock_path(address)
    try:
        if is_on_demand := private_files.signature(path)[1] == ON_DEMAND:
            _kill(address)
        if not _is_gone(address, KILL_SECONDS if is_on_demand else 0):
            path.unlink(missing_ok=True)
        address.path.unlink(missing_ok=True)
    except OSError as error:
        raise DaemonError(
            f"the daemon at {address.path} does not answer and cannot be replaced ({error}); kill its process"
        ) from error


def _is_gone(address: Address, seconds: float) -> bool:
    """Whether the daemon is gone; waits for it this long."""
    deadline = time.monotonic() + seconds
    while is_there := private_files.is_locked(lock_path(address)):
        if time.monotonic() >= deadline:
            break
        time.sleep(0.02)
    return not is_there


def _kill(address: Address) -> None:
    try:
        if (process := private_files.signature(lock_path(address))[0]) is not None:
            os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    except ProcessLookupError:
        pass
    except OSError as error:
        raise DaemonError(f"the daemon at {address.path} does not answer and cannot be killed: {error}") from error


def read_line(connection: socket.socket) -> bytes:
    """The next line; the other side must send nothing after it until we answer. Raises OSError."""
    line = bytearray()
    while not line.endswith(b"\n"):
        if len(line) > MAX_LINE_BYTES or not (data := connection.recv(MAX_LINE_BYTES)):
            raise ConnectionError("the other side hung up, or does not know this handshake")
        line += data
    return bytes(line)


def encode(line: dict[str, Any]) -> bytes:
    return json.dumps(line).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """The message in a line. Raises ValueError."""
    said = json.loads(line)
    if not isinstance(said, dict):
        raise ValueError("not an object")
    return said


def new_nonce() -> str:
    return os.urandom(16).hex()


def proof(key: bytes, side: str, nonce: str) -> str:
    """Proof, for the side that chose the nonce, that we know the key: HMAC-SHA256 in hex; empty for an empty key."""
    if not key:
        return ""
    import hmac  # 4 MB with its library, not needed by a relay on a Unix socket

    return hmac.digest(key, f"{side}{nonce}".encode(), "sha256").hex()


def is_proof(said: Any, key: bytes, side: str, nonce: str) -> bool:
    """Whether a proof is right, compared in constant time."""
    if not key:
        return said == ""
    import hmac

    return isinstance(said, str) and hmac.compare_digest(said.encode(), proof(key, side, nonce).encode())
