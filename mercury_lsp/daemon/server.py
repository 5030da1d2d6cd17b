"""The daemon: listens, lets callers in, and gives each a language server of its own on shared engines."""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic
from typing import Any

import mercury_lsp
from mercury_lsp.daemon import handshake
from mercury_lsp.daemon.address import Address, UnixAddress
from mercury_lsp.daemon.handshake import Hello
from mercury_lsp.daemon.welcome import welcome
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.engine_host.worker import LoadEngine
from mercury_lsp.server.routes import create_server
from mercury_lsp.server.server import MercuryServer
from mercury_lsp.transport.framing import Decoder, framed

logger = logging.getLogger(__name__)

READ_BYTES = 65536

MAX_UNSENT = 64 * 2**20
"""Bytes that wait for a client who does not read; then it is given up, for they are in everybody's memory."""


class Daemon:
    """Serves whoever comes to its address until it is told to stop, or nobody has come for a while."""

    def __init__(self, address: Address, load: LoadEngine, idle_seconds: float | None):
        self.engines = Engines(load)
        self._address = address
        self._idle_seconds = idle_seconds
        self._servers: set[MercuryServer] = set()
        self._conversations: set[asyncio.Task[None]] = set()
        self._started = monotonic()
        self._idle: asyncio.TimerHandle | None = None
        self._stopped = asyncio.Event()

    async def run(self, listening: socket.socket, key: bytes) -> None:
        """Serve; the socket file is gone when this returns."""
        loop = asyncio.get_running_loop()
        if sys.platform != "win32":
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._stopped.set)

        async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._come(reader, writer, key)

        start = asyncio.start_unix_server if isinstance(self._address, UnixAddress) else asyncio.start_server
        server = await start(come, sock=listening)
        self._rest()
        await self._stopped.wait()
        self._address.path.unlink(missing_ok=True)  # first, so that whoever comes now starts another daemon
        server.close()
        for each in self._servers:
            each.protocol.notify(handshake.GOODBYE)
        await asyncio.sleep(0)
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    def status(self) -> dict[str, Any]:
        """What `doctor` shows."""
        return {
            "version": mercury_lsp.version(),
            "pid": os.getpid(),
            "connections": len(self._servers),
            "seconds": round(monotonic() - self._started),
            "memoryMb": resident_mb(),
            "engines": [
                {"name": engine.name, "device": engine.device, "connections": users}
                for engine, users in self.engines.loaded()
            ],
        }

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._conversations.add(task)
        try:
            if hello := await welcome(reader, writer, key):
                await self._converse(hello, reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the caller has gone, or we go
        finally:
            self._conversations.discard(task)
            writer.close()

    async def _converse(self, hello: Hello, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if hello.purpose == "lsp":
            await self._serve_editor(hello, reader, writer)
        elif hello.purpose == "status":
            writer.write(json.dumps(self.status()).encode() + b"\n")
        elif hello.purpose == "stop":
            self._stopped.set()
            writer.write(b"{}\n")

    async def _serve_editor(self, hello: Hello, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = create_server(self.engines)
        server.configuration.started_in = Path(hello.folder)
        server.protocol.set_writer(_Bounded(writer))
        self._servers.add(server)
        if self._idle is not None:
            self._idle.cancel()
        try:
            await server.serve(_messages(reader, writer))
        except Exception:
            logger.exception("a connection has failed")
        finally:
            self._servers.discard(server)
            server.shutdown()
            self._rest()
            await asyncio.to_thread(server.session.statistics.wait)

    def _rest(self) -> None:
        """Stop after a while if nobody is there."""
        if self._idle_seconds is not None and not self._servers:
            self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._stopped.set)


class _Bounded:
    """Writes without waiting; gives up a client that does not read."""

    def __init__(self, writer: asyncio.StreamWriter):
        self._writer = writer

    def write(self, data: bytes) -> None:
        """As pygls wants it."""
        if self._writer.is_closing():
            return
        self._writer.write(data)
        if self._writer.transport.get_write_buffer_size() > MAX_UNSENT:
            logger.warning("a client does not read what it is sent")
            self._writer.transport.abort()

    def close(self) -> None:
        """As pygls wants it."""
        self._writer.close()


async def _messages(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[Any]:
    """What the client says; its relay's pings are answered here."""
    decoder = Decoder()
    while data := await reader.read(READ_BYTES):
        for message in decoder.feed(data):
            if isinstance(message, dict) and message.get("method") == handshake.PING:
                writer.write(framed({"jsonrpc": "2.0", "method": handshake.PONG}))
            else:
                yield message


def resident_mb() -> float | None:
    """Memory of this process; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError):
        return None
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
