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

    async def every(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [await found()]})

    async def chats(request: Request) -> Response:
        model = await found()
        return JSONResponse(
            {"object": "list", "data": [model] if "chat.completions" in model["supported_endpoints"] else []}
        )

    async def one(request: Request) -> Response:
        if (name := request.path_params["name"]) != (model := await service.model()):
            raise ApiError(
                404, f"there is no model {name!r} here; this server runs {model!r}", "model", "model_not_found"
            )
        return JSONResponse(await found())

    async def found() -> dict[str, Any]:
        engine = await service.engine()
        return _model(await service.model(), started, engine.chat_format)

    lists = [Route(f"/v1/{kind}/completions/models", chats if kind == "chat" else every) for kind in KINDS]
    return [Route("/v1/models", every), Route("/v1/models/{name:path}", one), *lists]


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
