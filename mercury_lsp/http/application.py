"""The application: every dialect's routes, behind the guard."""

from mercury_engine.errors import MercuryError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from mercury_lsp.http import (
    answers,
    chat,
    completions,
    edits,
    llama,
    models,
    ollama,
    playground,
    tabby,
)
from mercury_lsp.http.errors import on_error
from mercury_lsp.http.guard import Guard
from mercury_lsp.http.metrics import Metrics
from mercury_lsp.http.service import Service

DIALECTS = (chat, completions, tabby, llama, ollama, edits, models, answers, playground)


def application(service: Service, token: str | None) -> ASGIApp:
    """The ASGI application. `token`: what clients must send; None if clients on this machine need none."""
    metrics = Metrics(service)
    routes = [metrics.route(), *(route for dialect in DIALECTS for route in dialect.routes(service))]
    handlers = dict.fromkeys((MercuryError, HTTPException, Exception), on_error)
    return Guard(metrics.counting(Starlette(routes=routes, exception_handlers=handlers), routes), token)
