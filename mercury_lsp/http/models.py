"""`/v1/models` and its lists for each kind of completion."""

import time
from dataclasses import fields
from typing import Any

from mercury_engine.api import ChatFormat, Sampling
from mercury_engine.prompt.budget import NEAR_TOKENS, SEGMENT_TOKENS
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp.http.errors import ApiError
from mercury_lsp.http.gap import MAX_TOKENS
from mercury_lsp.http.service import Service

KINDS = ("fim", "edit", "chat")
"""Kinds of completions with a list of their own."""

SAMPLED = tuple(each.name for each in fields(Sampling))
"""Parameters of chats."""


def routes(service: Service) -> list[Route]:
    started = int(time.time())

    async def model() -> dict[str, Any]:
        engine = await service.engine()
        return _model(await service.model(), started, engine.chat_format)

    async def listed(request: Request) -> Response:
        """The model, unless the path asks for a kind of completions that it does not make."""
        found, kind = await model(), request.url.path.split("/")[2]
        is_fit = kind not in KINDS or f"{kind}.completions" in found["supported_endpoints"]
        return JSONResponse({"object": "list", "data": [found] if is_fit else []})

    async def one(request: Request) -> Response:
        found, name = await model(), request.path_params["name"]
        if name != found["id"]:
            message = f"there is no model {name!r} here; this server runs {found['id']!r}"
            raise ApiError(404, message, "model", "model_not_found")
        return JSONResponse(found)

    lists = ("/v1/models", *(f"/v1/{kind}/completions/models" for kind in KINDS))
    return [*(Route(path, listed) for path in lists), Route("/v1/models/{name:path}", one)]


def _model(name: str, created: int, chat_format: ChatFormat | None) -> dict[str, Any]:
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
        "supported_sampling_parameters": ["max_tokens", "stop", *(SAMPLED if chat_format else ())],
        "supported_features": ["tools", "json_mode", "structured_outputs"] if chat_format == "tool_call" else [],
        "supported_endpoints": [f"{kind}.completions" for kind in KINDS if kind != "chat" or chat_format],
    }
