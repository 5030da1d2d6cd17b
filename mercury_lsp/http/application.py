"""The application: every dialect's routes behind the guard, and `/metrics` for Prometheus."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from mercury_engine.errors import MercuryError
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mercury_lsp.http import (
    chat,
    completions,
    edits,
    llama,
    ollama,
    own_routes,
    tabby,
)
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.errors import on_error
from mercury_lsp.http.guard import Guard
from mercury_lsp.http.service import Service

DIALECTS = (chat, completions, tabby, llama, ollama, edits, own_routes)

BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def application(service: Service, token: str | None) -> ASGIApp:
    """The ASGI application. `token`: what clients must send; None if clients on this machine need none."""
    metrics = Metrics(service)
    routes = [metrics.route(), *(route for dialect in DIALECTS for route in dialect.routes(service))]
    handlers = dict.fromkeys((MercuryError, HTTPException, Exception), on_error)
    return Guard(metrics.counting(Starlette(routes=routes, exception_handlers=handlers), routes), token)


class Metrics:
    """Requests by route and status, their time, and tokens; figures, never text."""

    def __init__(self, service: Service):
        self._registry = CollectorRegistry()
        kept: dict[str, Any] = {"namespace": "mercury_http", "registry": self._registry}
        self._requests = Counter("requests", "Requests answered", ["route", "status"], **kept)
        self._seconds = Histogram(
            "request_seconds", "Time until a reply was sent whole", ["route"], buckets=BUCKETS, **kept
        )
        tokens = Counter("tokens", "Tokens", ["kind"], **kept)
        self._read, self._cached, self._written = (tokens.labels(kind) for kind in ("read", "cached", "written"))
        under_way = Gauge("completions_under_way", "Completions that run or wait", **kept)
        under_way.set_function(lambda: service.under_way)
        service.note = self._note

    def _note(self, completion: Completion) -> None:
        self._read.inc(completion.prompt_tokens - completion.cached_tokens)
        self._cached.inc(completion.cached_tokens)
        self._written.inc(completion.completion_tokens)

    def route(self) -> Route:
        async def show(request: Request) -> Response:
            return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)

        return Route("/metrics", show)

    def counting(self, app: ASGIApp, routes: Sequence[Route]) -> ASGIApp:
        """The application, with the requests to its routes counted."""
        known = {route.path for route in routes}

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            started, status = perf_counter(), "499"

            async def noting(message: Message) -> None:
                nonlocal status
                status = str(message.get("status", status))
                await send(message)

            try:
                await app(scope, receive, noting)
            finally:
                route = scope["path"] if scope["path"] in known else "other"
                self._requests.labels(route, status).inc()
                self._seconds.labels(route).observe(perf_counter() - started)

        return counted
