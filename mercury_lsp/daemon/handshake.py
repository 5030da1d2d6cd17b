"""What both sides say before the first LSP message, each on one line of JSON.

    caller  {"mercury": 1, "version": ..., "purpose": "lsp", "folder": ..., "nonce": ...}
    daemon  {"mercury": 1, "version": ..., "pid": ..., "nonce": ..., "proof": HMAC(token, "daemon" + caller's nonce)}
    caller  {"proof": HMAC(token, "caller" + daemon's nonce)}

The token itself never travels: a process that took over the port of a daemon that is gone learns nothing, and gets
no text of the user's. What fails is closed without a word. On a Unix socket the token is empty; there the file
system and the peer's credentials say who may come.
"""

import hmac
import json
import os
import secrets
import socket
from dataclasses import dataclass
from typing import Any, Literal, get_args

import mercury_lsp
from mercury_lsp.errors import DaemonError

PROTOCOL = 1
"""Of this handshake and of what the relay and the daemon say to each other besides LSP."""

MAX_LINE = 4096

SECONDS = 5.0
"""For each side to say its lines in."""

PING, PONG = "mercury/ping", "mercury/pong"
"""Notifications: the relay asks whether the daemon is alive, and the daemon says so at once."""

GOODBYE = "mercury/goodbye"
"""The daemon's notification that it ends because it was told to, so that nobody hurries to start another."""

Purpose = Literal["lsp", "status", "stop"]


class NoDaemon(OSError):
    """Whoever was there has gone, or does not speak this handshake."""


class NoAnswer(NoDaemon):
    """Whoever is there says nothing."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Who calls and what for."""

    version: str
    purpose: Purpose
    folder: str
    nonce: str

    @classmethod
    def parse(cls, line: bytes) -> "Hello":
        """Raises ValueError."""
        said = decode(line)
        if said.get("mercury") != PROTOCOL or said.get("purpose") not in get_args(Purpose):
            raise ValueError("another protocol")
        version, folder, nonce = (said.get(name) for name in ("version", "folder", "nonce"))
        if not (isinstance(version, str) and isinstance(folder, str) and isinstance(nonce, str)):
            raise ValueError("not a hello")
        return cls(version, said["purpose"], folder, nonce)


def call(connection: socket.socket, key: bytes, purpose: Purpose, folder: str | None = None) -> dict[str, Any]:
    """Introduce ourselves, or somebody in another folder; what the daemon said.

    Raises NoDaemon, NoAnswer after `SECONDS`, and DaemonError for one that we must not talk to.
    """
    nonce = secrets.token_hex(16)
    hello = {"mercury": PROTOCOL, "version": mercury_lsp.version(), "purpose": purpose}
    connection.settimeout(SECONDS)
    try:
        connection.sendall(encode(hello | {"folder": folder or here(), "nonce": nonce}))
        said = decode(read_line(connection))
        if not is_proof(said.get("proof"), key, "daemon", nonce):
            raise DaemonError("who listens does not know the token; remove the token file")
        if purpose == "lsp" and said.get("version") != hello["version"]:
            raise DaemonError(f"a daemon of version {said.get('version')} runs there; mercury-lsp serve --stop ends it")
        connection.sendall(encode({"proof": proof(key, "caller", str(said.get("nonce")))}))
    except TimeoutError as error:
        raise NoAnswer(str(error)) from error
    except (OSError, ValueError) as error:
        raise NoDaemon(str(error)) from error
    connection.settimeout(None)
    return said


def read_line(connection: socket.socket, longest: int = MAX_LINE) -> bytes:
    """One line, after which the other side says nothing until it is answered. Raises NoDaemon."""
    line = bytearray()
    while not line.endswith(b"\n"):
        if len(line) > longest or not (data := connection.recv(MAX_LINE)):
            raise NoDaemon("it has hung up")
        line += data
    return bytes(line)


def here() -> str:
    """The folder in which we were started."""
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return os.sep


def encode(line: dict[str, Any]) -> bytes:
    """One line."""
    return json.dumps(line).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """What a line says. Raises ValueError."""
    said = json.loads(line)
    if not isinstance(said, dict):
        raise ValueError("not an object")
    return said


def proof(key: bytes, side: str, nonce: str) -> str:
    """That the side knows the key, for who chose the nonce."""
    return hmac.digest(key, f"{side}{nonce}".encode(), "sha256").hex()


def is_proof(said: Any, key: bytes, side: str, nonce: str) -> bool:
    """Compared in constant time."""
    return isinstance(said, str) and hmac.compare_digest(said.encode(), proof(key, side, nonce).encode())
