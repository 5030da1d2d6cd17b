"""Checks every request before a route sees it, by its origin, its token and its size; ends it if its client leaves.

Web pages must not use the server: requests from another origin are rejected, no CORS header is ever sent, and without a
token the request's host must be this machine, so that a name in an attacker's DNS does not pass.
"""

import asyncio
import hmac
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mercury_lsp.http.errors import ApiError, reply_to
from mercury_lsp.settings import is_own_host

MAX_BODY_BYTES = 2 * 2**20

BODY_SECONDS = 20.0
"""For a client to send a whole body."""

OPEN_ROUTES = ("/health", "/v1/health", "/", "/playground.js", "/playground.css")
"""They need no token: the first two are for load balancers, and the playground asks its user for the token."""


class Guard:
    """Checks requests, reads their bodies within bounds, and cancels the routes of clients that disconnect."""

    def __init__(self, app: ASGIApp, token: str | None):
        self._app, self._token = app, token.encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._require_allowed(scope["path"], Headers(scope=scope))
            body = await _body(receive)
        except ApiError as error:
            reply = reply_to(error, scope["path"])
            reply.headers["Connection"] = "close"  # the rest of the body is not read
            await reply(scope, receive, send)
        else:
            await self._until_gone(scope, body, receive, send)

    async def _until_gone(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        unread, gone = [body], asyncio.ensure_future(_disconnection(receive))

        async def replay() -> Message:
            return {"type": "http.request", "body": unread.pop()} if unread else await asyncio.shield(gone)

        answering = asyncio.ensure_future(self._app(scope, replay, send))
        gone.add_done_callback(lambda _: answering.cancel())
        try:
            await answering
        except asyncio.CancelledError:
            if not gone.done():
                raise
        finally:
            gone.cancel()

    def _require_allowed(self, path: str, headers: Headers) -> None:
        """Raise ApiError for a request of a web page elsewhere, and without the token if there is one."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if origin is not None and _split(origin).netloc != host:
            raise ApiError(403, f"pages from {origin[:200]} may not use this server")
        if self._token is None:
            if not is_own_host(_split(f"//{host}").hostname or ""):
                raise ApiError(403, f"{host[:200]!r} is not this server's name; use 127.0.0.1")
        elif path not in OPEN_ROUTES and not hmac.compare_digest(_token(headers), self._token):
            raise ApiError(401, "wrong token; send MERCURY_TOKEN as Authorization: Bearer", code="invalid_api_key")


def _split(url: str) -> SplitResult:
    """The parts of a URL; all empty where it is none."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _token(headers: Headers) -> bytes:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return (token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")).encode("utf-8", "replace")


async def _body(receive: Receive) -> bytes:
    """The request's body. Raises ApiError if it is too long, or takes too long."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > MAX_BODY_BYTES:
                    raise ApiError(413, f"the body has more than {MAX_BODY_BYTES:,} bytes")
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise ApiError(408, f"the body did not arrive within {BODY_SECONDS:.0f} seconds") from None


async def _disconnection(receive: Receive) -> Message:
    """The message that the client disconnected, or has its reply."""
    while (message := await receive())["type"] != "http.disconnect":
        pass
    return message
