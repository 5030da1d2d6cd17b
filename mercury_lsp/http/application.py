"""The application: every dialect's routes, behind the guard."""

from mercury_engine.errors import MercuryError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from mercury_lsp.http import fim, llama, models
from mercury_lsp.http.errors import on_error
from mercury_lsp.http.guard import Guard
from mercury_lsp.http.service import Service


def application(service: Service, token: str | None) -> ASGIApp:
    """What answers requests. `token`: what clients must send; None: this machine's clients need none."""
    routes = [*fim.routes(service), *llama.routes(service), *models.routes(service)]
    handlers = dict.fromkeys((MercuryError, HTTPException, Exception), on_error)
    return Guard(Starlette(routes=routes, exception_handlers=handlers), token)
