"""The daemon: accepts connections and gives each its own language server on shared engines."""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from time import monotonic
from typing import Any, get_args

from mercury_engine.models import memory

import mercury_lsp
from mercury_lsp.daemon import control
from mercury_lsp.daemon.address import Address, is_same_user
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.engine_host.loading import LoadEngine
from mercury_lsp.server.routes import create_server
from mercury_lsp.server.server import MercuryServer
from mercury_lsp.transport.framing import READ_BYTES, MessageDecoder, framed

logger = logging.getLogger(__name__)

SIGN_OF_LIFE_SECONDS = 1.0
"""Seconds between two signs of life during a backlog."""

PONG = framed({"jsonrpc": "2.0", "method": control.PONG})


class Daemon:
    """Serves the clients of its address until it is stopped or has been idle for a while."""

    def __init__(self, address: Address, load: LoadEngine, idle_seconds: float | None, has_address: Callable[[], bool]):
        self.engines = Engines(load)
        self._has_address = has_address
        """False once another daemon has taken over the address, because this one did not answer."""
        self._address = address
        self._idle_seconds = idle_seconds
        self._servers: set[MercuryServer] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._stopped = asyncio.Event()

    async def run(self, listening: socket.socket, key: bytes) -> None:
        """Serve until stopped; the socket file is gone when this returns."""
        loop = asyncio.get_running_loop()
        if sys.platform != "win32":
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._stopped.set)

        server = await asyncio.start_server(partial(self._accept, key), sock=listening)
        self._stop_when_idle()
        await self._stopped.wait()
        if self._has_address():
            self._address.path.unlink(missing_ok=True)  # first, so that the next client starts another daemon
        server.close()
        for each in self._servers:
            each.notify(control.GOODBYE)
        await asyncio.sleep(0)
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def status(self) -> dict[str, Any]:
        """The status that `doctor` shows."""
        return {
            "version": mercury_lsp.__version__,
            "pid": os.getpid(),
            "connections": len(self._servers),
            "memoryMb": memory.resident_mb(),
            "engines": [
                {"name": engine.name, "device": engine.device, "connections": users}
                for engine, users in self.engines.loaded()
            ],
        }

    async def _accept(self, key: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            match await _welcome(reader, writer, key):
                case "lsp":
                    await self._serve_editor(reader, writer)
                case "status":
                    writer.write(json.dumps(self.status()).encode() + b"\n")
                case "stop":
                    self._stopped.set()
                    writer.write(b"{}\n")
        except (ConnectionError, asyncio.CancelledError):
            pass  # the caller is gone, or the daemon is stopping
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve_editor(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = create_server(self.engines, writer.write)
        self._servers.add(server)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        try:
            await server.serve(_messages(reader, writer))
        except Exception:
            logger.exception("a connection has failed")
        finally:
            self._servers.discard(server)
            server.close()
            self._stop_when_idle()
            await asyncio.to_thread(server.session.statistics.wait)

    def _stop_when_idle(self) -> None:
        """Stop after a while unless a client connects; at once if no client can find this daemon."""
        if self._servers:
            return
        if not self._has_address():
            self._stopped.set()
        elif self._idle_seconds is not None:
            self._idle_timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._stopped.set)


async def _messages(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[Any]:
    """The client's messages; pings of its relay are answered here.

    During a backlog the relay gets signs of life: opening 10,000 documents takes longer than its wait for a pong.
    """
    decoder, signed = MessageDecoder(), monotonic()
    while data := await reader.read(READ_BYTES):
        for message in decoder.feed(data):
            if monotonic() - signed > SIGN_OF_LIFE_SECONDS:
                writer.write(PONG)
                signed = monotonic()
            if isinstance(message, dict) and message.get("method") == control.PING:
                writer.write(PONG)
            else:
                yield message


async def _welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes) -> control.Purpose | None:
    """What the caller wants; None if it may not connect."""
    if not is_same_user(writer.get_extra_info("socket")):
        return None
    about = {"mercury": control.PROTOCOL_VERSION, "version": mercury_lsp.__version__}
    try:
        async with asyncio.timeout(control.TIMEOUT_SECONDS):
            hello = control.decode(await reader.readline())
            purpose, nonce, ours = hello.get("purpose"), hello.get("nonce"), control.new_nonce()
            if hello.get("mercury") != about["mercury"] or purpose not in get_args(control.Purpose):
                return None
            proof = control.proof(key, "daemon", str(nonce))
            writer.write(control.encode(about | {"pid": os.getpid(), "nonce": ours, "proof": proof}))
            said = control.decode(await reader.readline())
    except (OSError, ValueError):  # readline raises ValueError for an endless line
        return None
    if purpose == "lsp" and hello.get("version") != about["version"]:
        return None
    return purpose if control.is_proof(said.get("proof"), key, "caller", ours) else None
