"""The daemon's side of the handshake."""

import asyncio
import os
import secrets
import socket

import mercury_lsp
from mercury_lsp.daemon.address import peer_user
from mercury_lsp.daemon.handshake import PROTOCOL, SECONDS, Hello, decode, encode, is_proof, proof


async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes) -> Hello | None:
    """Let a caller introduce itself; None if it may not come in."""
    if not _is_same_user(writer.get_extra_info("socket")):
        return None
    try:
        async with asyncio.timeout(SECONDS):
            hello = Hello.parse(await reader.readline())
            nonce = secrets.token_hex(16)
            about = {"mercury": PROTOCOL, "version": mercury_lsp.version(), "pid": os.getpid(), "nonce": nonce}
            writer.write(encode(about | {"proof": proof(key, "daemon", hello.nonce)}))
            said = decode(await reader.readline())
    except (OSError, ValueError):  # ValueError is also what readline raises for a line without end
        return None
    if hello.purpose == "lsp" and hello.version != mercury_lsp.version():
        return None
    return hello if is_proof(said.get("proof"), key, "caller", nonce) else None


def _is_same_user(connection: socket.socket) -> bool:
    """On TCP nobody tells: there the token decides."""
    if connection.family == socket.AF_INET:
        return True
    return peer_user(connection) in (None, os.getuid())
