"""HTTP to one server: its key, retries until a reply begins, the reply's lines as they arrive, and how long to wait."""

import asyncio
import json
import logging
import os
import random
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from secrets import token_hex
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
from mercury_engine.api import Control
from mercury_engine.errors import Cancelled, MercuryError, RequestError

from mercury_lsp.engine_host.remote.answers import label
from mercury_lsp.settings import is_loopback

T = TypeVar("T")

KEY_VARIABLE = "MERCURY_API_KEY"
"""Read from the environment only; never in a setting, file or log."""

SESSION_HEADER = "x-session-id"
"""Random for each connection: a cluster routes it to the replica that has its context (docs/scale.md)."""

CONNECT_SECONDS = 2.0

REPLY_SECONDS = 30.0
"""For a server to describe itself; it may be loading its model."""

RETRIES = 2
"""If no connection is made, or the server is busy."""

RETRY_AFTER_SECONDS = 0.1
"""Before the first retry; twice as long before the second."""

BUSY = (429, 503)

MAX_REPLY_BYTES = 2**20
"""Several times the longest fill with all its steps."""

POLL_SECONDS = 0.02
"""Between two looks at the cancel flag while a reply is awaited."""

MIN_SECONDS, MAX_SECONDS = 1.0, 2.0
"""Bounds of the time in which an answer has to begin."""

LATE = 4.0
"""An answer is late if it has not begun after this many times the usual time of whole answers."""

LEARNING_RATE = 0.2

MAX_MISSED = 3
"""Misses in a row after which the server counts as not answering."""

logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs every request


class RemoteError(MercuryError):
    """The remote engine did not answer; the local one does."""


class NoSuchRoute(RemoteError):
    """The server does not understand this kind of request."""


class Connection:
    """Requests to one server, from one event loop at a time."""

    def __init__(self, base: str, key_variable: str = KEY_VARIABLE):
        """`base`: scheme, host and port, perhaps with the beginning of a path. `key_variable` may hold its key."""
        self._base, self._key_variable = base, key_variable
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def _connected(self) -> httpx2.AsyncClient:
        """The client of the running event loop."""
        if self._client is None or self._loop is not asyncio.get_running_loop():
            key, self._loop = os.environ.get(self._key_variable), asyncio.get_running_loop()
            self._client = httpx2.AsyncClient(
                base_url=self._base,
                headers={SESSION_HEADER: token_hex(8)} | ({"Authorization": f"Bearer {key}"} if key else {}),
                timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
                trust_env=not is_loopback(self._base),  # a proxy would see what stays on this machine
            )
        return self._client

    async def json(self, path: str, body: Any = None) -> Any:
        """The JSON at a path, or the reply to a body. Raises RemoteError, and RequestError if the server refuses."""
        async with asyncio.timeout(REPLY_SECONDS), aclosing(self.lines(path, body)) as lines:
            return parsed("\n".join([line async for line in lines]))

    async def first_model(self) -> str:
        """The first model that the server lists; empty if it lists none. Raises RemoteError."""
        with suppress(NoSuchRoute, RequestError):
            match await self.json("/v1/models"):
                case {"data": [{"id": str(name)}, *_]}:
                    return label(name)
        return ""

    async def lines(self, path: str, body: Any = None) -> AsyncGenerator[str]:
        """The lines of a reply, to a body if there is one; close the generator to hang up. Raises as `json` does.

        A request is sent again only while no line of a reply has come.
        """
        method, headers, content = "GET", dict[str, str](), None
        if body is not None:
            method, headers = "POST", {"Content-Type": "application/json"}
            content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        for attempt in range(RETRIES + 1):
            is_last = attempt == RETRIES
            try:
                async with self._connected().stream(method, path, content=content, headers=headers) as reply:
                    if reply.status_code == 200:
                        is_last = True
                        async for line in _lines_of(reply):
                            yield line
                        return
                    if is_last or reply.status_code not in BUSY:
                        raise _refusal(reply.status_code, " ".join([line async for line in _lines_of(reply)]))
            except httpx2.HTTPError as error:
                if is_last:
                    raise RemoteError(label(f"{type(error).__name__}: {error}")) from error
            await asyncio.sleep(RETRY_AFTER_SECONDS * 2**attempt * random.uniform(0.5, 1.0))

    async def events(self, path: str, body: Any) -> AsyncGenerator[Any]:
        """The JSON of server-sent events, or of a whole reply; close the generator to hang up. Raises as `json`."""
        async with aclosing(self.lines(path, body)) as lines:
            async for line in lines:
                text = line.removeprefix("data:").strip()
                if text == "[DONE]":
                    return
                if text.startswith("{"):  # else a comment, a name, or the empty line after an event
                    yield parsed(text)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def close(self) -> None:
        """Hang up; returns at once, on any thread."""
        if self._loop is not None and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self.aclose(), self._loop)


class Patience:
    """Judges a server by one kind of question.

    A miss is a question whose time is up. Questions that were withdrawn as the user typed on count together, if each
    waited longer than usual.
    """

    def __init__(self, usual: float):
        """`usual`: seconds that the first answer is expected to take."""
        self._usual, self._waited, self._missed = usual, 0.0, 0

    @property
    def seconds(self) -> float:
        """Time in which an answer has to begin."""
        return min(max(LATE * self._usual, MIN_SECONDS), MAX_SECONDS)

    @property
    def is_over(self) -> bool:
        """Whether the server counts as not answering."""
        return self._missed >= MAX_MISSED

    def answered(self, seconds: float) -> None:
        self._usual += LEARNING_RATE * (seconds - self._usual)
        self.renew()

    def missed(self) -> None:
        self._waited, self._missed = 0.0, self._missed + 1

    def withdrawn(self, seconds: float) -> None:
        """Nobody waits any longer for an answer that did not come after so long."""
        if seconds > self._usual:
            self._waited += seconds
        if self._waited >= self.seconds:
            self.missed()

    def renew(self) -> None:
        """Forget the misses."""
        self._waited, self._missed = 0.0, 0


async def unless_cancelled(
    asking: Coroutine[Any, Any, T], control: Control, seconds: float, look: Callable[[], None] = lambda: None
) -> T:
    """The answer; hangs up when the control's flag is set, the time is up, or `look`, called meanwhile, raises.

    Raises Cancelled, TimeoutError, what `look` raises and what asking raises.
    """
    task = asyncio.ensure_future(asking)
    try:
        async with asyncio.timeout(seconds):
            while not task.done():
                await asyncio.wait((task,), timeout=POLL_SECONDS)
                if control.cancel.is_set():  # also when it failed: closing the engine hangs up
                    raise Cancelled("cancelled while a server was asked")
                look()
        return task.result()
    finally:
        task.cancel()


async def _lines_of(reply: httpx2.Response) -> AsyncGenerator[str]:
    """A reply's lines. Raises RemoteError if it is too long."""
    rest, room = b"", MAX_REPLY_BYTES
    async for part in reply.aiter_bytes():
        room -= len(part)
        if room < 0:
            raise RemoteError(f"its reply has more than {MAX_REPLY_BYTES:,} bytes")
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
    yield rest.decode("utf-8", "replace")


def located(url: str, routes: Sequence[str]) -> tuple[str, str | None]:
    """A URL's server, and the one of the routes that the URL ends with, if any."""
    whole = urlsplit(url)
    path = whole.path.rstrip("/")
    route = next((each for each in routes if path.endswith(each)), None)
    return f"{whole.scheme}://{whole.netloc}{path.removesuffix(route or '/v1')}", route


def parsed(text: str) -> Any:
    """A reply's JSON. Raises RemoteError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise RemoteError("its reply is not JSON") from None


def _refusal(status: int, said: str) -> MercuryError:
    with suppress(ValueError, KeyError, TypeError):
        said = str(json.loads(said)["error"]["message"])
    said = label(said)
    if status in (400, 413, 422):
        return RequestError(f"the remote engine rejects the request: {said}")
    if status in (404, 405, 501):
        return NoSuchRoute(f"HTTP {status}: {said}")
    hint = f"; check {KEY_VARIABLE}" if status in (401, 403) else ""
    return RemoteError(f"HTTP {status}{hint}: {said}")
