"""HTTP to one server: its key, timeouts, retries until a reply begins, and the reply's lines as they arrive."""

import asyncio
import json
import logging
import os
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mercury_engine.errors import MercuryError, RequestError

from mercury_lsp.engine_host.remote.answers import label
from mercury_lsp.settings import is_loopback

KEY_VARIABLE = "MERCURY_API_KEY"
"""Read from the environment only; never in a setting, file or log."""

SESSION_HEADER = "x-session-id"
"""Random for each connection: a cluster routes it to the replica that has its context (docs/scale.md)."""

CONNECT_SECONDS = 2.0

DESCRIPTION_SECONDS = 30.0
"""For a server to describe itself; it may be loading its model."""

RETRIES = 2
"""If no connection is made, or the server is busy."""

RETRY_AFTER_SECONDS = 0.1
"""Before the first retry; twice as long before the second."""

BUSY = (429, 503)

MAX_REPLY_BYTES = 2**20
"""Several times the longest fill with all its steps."""

logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs every request


class RemoteError(MercuryError):
    """The remote engine did not answer; the local one does."""


class NoSuchRoute(RemoteError):
    """The server does not understand this kind of request."""


class Connection:
    """Requests to one server; belongs to the event loop that is running when it is made."""

    def __init__(self, base: str, key_variable: str = KEY_VARIABLE):
        """`base`: scheme, host and port, perhaps with the beginning of a path. `key_variable` may hold its key."""
        key = os.environ.get(key_variable)
        self._client = httpx2.AsyncClient(
            base_url=base,
            headers={SESSION_HEADER: token_hex(8)} | ({"Authorization": f"Bearer {key}"} if key else {}),
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            trust_env=not is_loopback(base),  # a proxy would see what stays on this machine
        )
        self.loop = asyncio.get_running_loop()

    async def json(self, path: str) -> Any:
        """What is at a path. Raises RemoteError, and RequestError for a request that the server refuses."""
        async with asyncio.timeout(DESCRIPTION_SECONDS):
            lines = [line async for line in self.lines("GET", path, None)]
        return parsed("\n".join(lines))

    async def first_model(self) -> str:
        """The first model that the server lists; empty if it lists none. Raises RemoteError."""
        with suppress(NoSuchRoute, RequestError):
            match await self.json("/v1/models"):
                case {"data": [{"id": str(name)}, *_]}:
                    return label(name)
        return ""

    async def lines(self, method: str, path: str, content: bytes | None) -> AsyncGenerator[str]:
        """A reply's lines; close the generator to hang up. Raises as `json` does.

        A request is sent again only while no line of a reply has come.
        """
        headers = {"Content-Type": "application/json"} if content is not None else {}
        for attempt in range(RETRIES + 1):
            is_last = attempt == RETRIES
            try:
                async with self._client.stream(method, path, content=content, headers=headers) as reply:
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
        async with aclosing(self.lines("POST", path, encoded(body))) as lines:
            async for line in lines:
                text = line.removeprefix("data:").strip()
                if text == "[DONE]":
                    return
                if text.startswith("{"):  # else a comment, a name, or the empty line after an event
                    yield parsed(text)

    async def close(self) -> None:
        await self._client.aclose()


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


def encoded(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


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
        return RequestError(f"the remote engine refuses the request: {said}")
    if status in (404, 405, 501):
        return NoSuchRoute(f"HTTP {status}: {said}")
    hint = f"; check {KEY_VARIABLE}" if status in (401, 403) else ""
    return RemoteError(f"HTTP {status}{hint}: {said}")
