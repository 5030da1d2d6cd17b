"""Checks every request before a route sees it: its origin, its token and its size.

Web pages must not use the server: requests from another origin are rejected, no CORS header is ever sent, and without a
token the request's host must be this machine, so that a name in an attacker's DNS does not pass.
"""

import asyncio
import hmac
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mercury_lsp.http.errors import ApiError, reply_to

MAX_BODY_BYTES = 2 * 2**20

BODY_SECONDS = 20.0
"""For a client to send a whole body."""

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")

OPEN_ROUTES = ("/health", "/v1/health", "/", "/playground.js", "/playground.css")
"""They need no token: the first two are for load balancers, and the playground asks its user for the token."""


class Guard:
    """Checks requests, and reads their bodies within bounds."""

    def __init__(self, app: ASGIApp, token: str | None):
        self._app, self._token = app, token.encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope["path"], Headers(scope=scope))
        body = b""
        if refusal is None:
            try:
                body = await _body(receive)
            except ApiError as error:
                refusal = error
        if refusal is None:
            await self._app(scope, _replaying(body, receive), send)
        else:
            reply = reply_to(refusal)
            reply.headers["Connection"] = "close"  # the rest of the body is not read
            await reply(scope, receive, send)

    def _refusal(self, path: str, headers: Headers) -> ApiError | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if origin is not None and _split(origin).netloc != host:
            return ApiError(403, f"pages from {origin[:200]} may not use this server")
        if self._token is None:
            is_local = _split(f"//{host}").hostname in LOCAL_HOSTS
            return None if is_local else ApiError(403, f"{host[:200]!r} is not this server's name; use 127.0.0.1")
        if path in OPEN_ROUTES or hmac.compare_digest(_token(headers), self._token):
            return None
        return ApiError(401, "wrong token; send MERCURY_TOKEN as Authorization: Bearer", code="invalid_api_key")


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


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Receives the whole body, then the client's disconnection."""
    unread = [body]

    async def replay() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return replay
