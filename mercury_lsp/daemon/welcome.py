"""The daemon's side of the handshake."""

import asyncio
import os
import socket
from dataclasses import dataclass
from typing import get_args

import mercury_lsp
from mercury_lsp.daemon.address import peer_user
from mercury_lsp.daemon.handshake import (
    PROTOCOL_VERSION,
    TIMEOUT_SECONDS,
    Purpose,
    decode,
    encode,
    is_proof,
    new_nonce,
    proof,
)


@dataclass(frozen=True, slots=True)
class Hello:
    """Who connects, and why."""

    version: str
    purpose: Purpose
    nonce: str

    @classmethod
    def parse(cls, line: bytes) -> "Hello":
        """Raises ValueError."""
        said = decode(line)
        if said.get("mercury") != PROTOCOL_VERSION or said.get("purpose") not in get_args(Purpose):
            raise ValueError("another protocol")
        version, nonce = said.get("version"), said.get("nonce")
        if not (isinstance(version, str) and isinstance(nonce, str)):
            raise ValueError("not a hello")
        return cls(version, said["purpose"], nonce)


async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes) -> Hello | None:
    """The caller's introduction; None if it may not connect."""
    if not _is_same_user(writer.get_extra_info("socket")):
        return None
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            hello = Hello.parse(await reader.readline())
            nonce = new_nonce()
            about = {
                "mercury": PROTOCOL_VERSION,
                "version": mercury_lsp.__version__,
                "pid": os.getpid(),
                "nonce": nonce,
            }
            writer.write(encode(about | {"proof": proof(key, "daemon", hello.nonce)}))
            said = decode(await reader.readline())
    except (OSError, ValueError):  # readline raises ValueError for an endless line
        return None
    if hello.purpose == "lsp" and hello.version != mercury_lsp.__version__:
        return None
    return hello if is_proof(said.get("proof"), key, "caller", nonce) else None


def _is_same_user(connection: socket.socket) -> bool:
    """Whether the caller is the same user; on TCP the token decides instead."""
    if connection.family == socket.AF_INET:
        return True
    return peer_user(connection) in (None, os.getuid())
