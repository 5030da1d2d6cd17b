"""`/v1/models` and its lists for each kind of completion."""

from typing import Any

from mercury_engine.prompt.budget import NEAR_TOKENS, SEGMENT_TOKENS
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp.http import replies
from mercury_lsp.http.fim import MAX_TOKENS
from mercury_lsp.http.service import Service

KINDS = ("fim", "edit")
"""Kinds of completions with a list of their own."""


def routes(service: Service) -> list[Route]:
    """The routes of this dialect."""
    started = replies.now()

    async def every(request: Request) -> Response:
        name = await service.model()
        return JSONResponse({"object": "list", "data": [_model(name, started)]})

    async def one(request: Request) -> Response:
        return JSONResponse(_model(await service.model(), started))

    lists = [Route(f"/v1/{kind}/completions/models", every) for kind in KINDS]
    return [Route("/v1/models", every), Route("/v1/models/{name:path}", one), *lists]


def _model(name: str, created: int) -> dict[str, Any]:
    return {
        "id": name,
        "name": name,
        "object": "model",
        "owned_by": "mercury-lsp",
        "created": created,
        "context_length": NEAR_TOKENS + SEGMENT_TOKENS,
        "max_output_length": MAX_TOKENS,
        "input_modalities": ["text"],
        "output_modalities": ["text"],
        "pricing": {"prompt": "0", "completion": "0"},
        "supported_sampling_parameters": ["max_tokens", "stop"],
        "supported_features": [],
        "supported_endpoints": [f"{kind}.completions" for kind in KINDS],
    }
