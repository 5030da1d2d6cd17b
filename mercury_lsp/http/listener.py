"""Listens for HTTP: the address, the token, and limits of connections."""

import asyncio
import logging
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Self

import uvicorn
from mercury_engine.api import InferenceEngine
from uvicorn.protocols.http.h11_impl import H11Protocol

from mercury_lsp.debounce import Debounced
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.errors import UsageError
from mercury_lsp.http.application import application
from mercury_lsp.http.service import Service
from mercury_lsp.settings import Settings, is_own_host

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8012

TOKEN_VARIABLE = "MERCURY_TOKEN"

MIN_TOKEN_CHARS = 16

HEAD_SECONDS = 10.0
"""For a client to send the head of a request."""

SEND_SECONDS = 20.0
"""For a client to read what was sent."""

UNREAD_BYTES = 2**16
"""The system's buffer for a client that does not read; by default Linux keeps megabytes."""

MAX_CONNECTIONS = 512
"""Connections at a time; a request on a further one is answered with 503."""

MAX_REFUSED = 1024
"""Connections beyond the limit that wait for their 503; further ones are closed at once."""

ACCEPTED_TOGETHER = 16
"""Connections accepted in one turn of the event loop, while editors wait."""

MAX_FILES = 4096
"""Files and sockets that the process may open if the system allows it, including editors' connections."""

STOP_SECONDS = 2
"""For running replies when the server stops."""


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """Where to listen."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT

    @classmethod
    def parse(cls, text: str) -> Self:
        """HOST:PORT, [IPV6]:PORT, HOST or PORT; the rest is the default. Raises UsageError."""
        found = re.fullmatch(r"(?:(\[[\da-fA-F:]+\]|[\w.-]*[a-zA-Z.][\w.-]*)(?::|$))?(\d{1,5})?", text)
        if found is None or int(found[2] or 0) > 65535:
            raise UsageError(f"{text!r} is not HOST:PORT; an example is {DEFAULT_HOST}:{DEFAULT_PORT}")
        return cls((found[1] or DEFAULT_HOST).strip("[]"), int(found[2] or DEFAULT_PORT))

    def listen(self) -> socket.socket:
        """A listening socket. Raises UsageError."""
        try:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            made = socket.create_server((self.host, self.port), family=family, backlog=MAX_CONNECTIONS)
        except OSError as error:
            raise UsageError(
                f"cannot listen at {self.host}:{self.port} ({error.strerror}); name another HOST:PORT"
            ) from None
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES)  # its connections inherit both
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else a body waits 40 ms for its head's receipt
        return made


def token_for(address: HttpAddress) -> str | None:
    """The token that clients must send; None if they need none. Raises UsageError."""
    token = named_token()
    if token is None and not is_own_host(address.host):
        raise UsageError(f"others can reach {address.host}; set {TOKEN_VARIABLE} to a token that clients must send")
    return token


def named_token() -> str | None:
    """The token in the environment. Raises UsageError if it is too short or cannot be sent."""
    token = os.environ.get(TOKEN_VARIABLE) or None
    if token is not None and len(token) < MIN_TOKEN_CHARS:
        raise UsageError(f"{TOKEN_VARIABLE} is shorter than {MIN_TOKEN_CHARS} characters; make a longer one")
    if token is not None and (not token.isprintable() or " " in token):
        raise UsageError(f"{TOKEN_VARIABLE} has blanks or control characters, which no client can send; leave them out")
    return token


class HttpListener:
    """Listens at once, to report an invalid address early; serves later, beside the daemon."""

    def __init__(self, address: HttpAddress, settings: Settings):
        """Raises UsageError."""
        self._token, self._settings = token_for(address), settings
        self._socket = address.listen()
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"

    @asynccontextmanager
    async def serving(self, engines: Engines) -> AsyncIterator[None]:
        """Serves while the context is open, with the process's engines."""
        _allow_files()
        service = Service(engines, self._settings)
        config = uvicorn.Config(
            application(service, self._token),
            http=_Protocol,
            backlog=ACCEPTED_TOGETHER,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # clients could fill the log with warnings
        server = _Server(config)
        serving = asyncio.create_task(server.serve([self._socket]))
        loading = asyncio.create_task(service.engine())
        loading.add_done_callback(self._tell)
        try:
            yield
        finally:
            loading.cancel()
            service.close()
            server.should_exit = True
            await serving

    def _tell(self, loading: "asyncio.Task[InferenceEngine]") -> None:
        """Print the address once the model is loaded, or why it is not; the next request tries again."""
        if loading.cancelled():
            return
        error = loading.exception()
        found = f"with {loading.result().name}" if error is None else f"without a model: {error}"
        sys.stderr.write(f"mercury-lsp: serving {self.url} {found}\n")
        sys.stderr.flush()


def _allow_files() -> None:
    """Raise the process's limit of open files, which is 256 or 1,024 on many systems."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_FILES if hard == resource.RLIM_INFINITY else min(MAX_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _Server(uvicorn.Server):
    """Leaves signals to the daemon, and accepts few connections at a time."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(MAX_CONNECTIONS)  # asyncio takes the number accepted in a turn for that of those that wait

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Protocol(H11Protocol):
    """Hangs up on clients that do not finish the head of a request, or do not read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._silence, self._unread = Debounced(transport.abort), Debounced(transport.abort)
        self._is_silent = False
        if len(self.connections) > MAX_CONNECTIONS:
            self.limit_concurrency = 0  # its request is answered with 503
        if len(self.connections) > MAX_CONNECTIONS + MAX_REFUSED:
            transport.abort()
        transport.set_write_buffer_limits(high=0)  # what the system does not take at once counts as unread
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._silence.cancel()
        self._unread.cancel()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread.postpone(SEND_SECONDS)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread.cancel()

    def _expect_head(self) -> None:
        """Wait a limited time for a whole head, however slowly its bytes arrive."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering:
            self._silence.cancel()
        elif not self._is_silent:
            self._silence.postpone(HEAD_SECONDS)
        self._is_silent = not is_answering
