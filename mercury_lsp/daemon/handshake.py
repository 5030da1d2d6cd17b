"""The handshake before the first LSP message: each side sends lines of JSON.

    caller  {"mercury": 1, "version": ..., "purpose": "lsp", "nonce": ...}
    daemon  {"mercury": 1, "version": ..., "pid": ..., "nonce": ..., "proof": HMAC(token, "daemon" + caller's nonce)}
    caller  {"proof": HMAC(token, "caller" + daemon's nonce)}

The token itself is never sent, so a process that took over a dead daemon's port learns nothing and gets none of the
user's text. A connection whose handshake fails is closed without a reply. On a Unix socket token and proofs are empty:
the file system and the peer's credentials decide who may connect.
"""

import json
import os
import socket
from typing import Any, Literal

import mercury_lsp
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


def call(connection: socket.socket, key: bytes, purpose: Purpose, seconds: float = TIMEOUT_SECONDS) -> dict[str, Any]:
    """Introduce ourselves; returns the daemon's line.

    Raises TimeoutError if it sends nothing for that long, OSError if it hangs up or does not know this handshake, and
    DaemonError if we must not talk to it.
    """
    nonce = new_nonce()
    hello = {"mercury": PROTOCOL_VERSION, "version": mercury_lsp.__version__, "purpose": purpose}
    connection.settimeout(seconds)
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
    connection.settimeout(None)
    return said


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
