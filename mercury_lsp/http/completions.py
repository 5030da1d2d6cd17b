"""`/v1/fim/completions` of Mercury's and Mistral's APIs, OpenAI's `/v1/completions`, and the lists of models.

`/v1/completions` takes a suffix, or a prompt in a model's own template. Its bodies with `segments` are Tabby's.
"""

import time
from collections.abc import Sequence
from dataclasses import fields as fields_of
from typing import Any

from mercury_engine.api import Sampling
from mercury_engine.prompt.layout import NEAR_TOKENS, SEGMENT_TOKENS
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp.http import fields, replies, tabby
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.errors import ApiError, bad_request
from mercury_lsp.http.gap import MAX_TOKENS, ONE_PARAGRAPH, Gap, GapRequest
from mercury_lsp.http.rewriting import rewritten, sweep_prompt
from mercury_lsp.http.service import Service
from mercury_lsp.http.templates import taken_apart

FIM_TOKENS, DEFAULT_TOKENS = 512, 256

KIND = "text_completion"

MODEL_KINDS = ("fim", "edit", "chat")
"""Kinds of completions with a list of models of their own."""


def routes(service: Service) -> list[Route]:
    started = int(time.time())

    async def fim(request: Request) -> Response:
        asked = await fields.read(request, GapRequest)
        return await answered(asked, asked.gap(FIM_TOKENS, ONE_PARAGRAPH))

    async def complete(request: Request) -> Response:
        body = await fields.read_object(request)
        if body.get("segments") is not None:
            return await tabby.answered(service, fields.structured(body, tabby.TabbyRequest))
        for name in ("echo", "logprobs"):
            if body.get(name):
                raise bad_request(f"{name} is not supported here; leave it out", name)
        asked = fields.structured(body, GapRequest)
        if (document := sweep_prompt("".join(asked.prompt))) is not None:
            found, _ = await rewritten(service, document)
            return await replies.known(service, KIND, found, asked.stream)
        return await answered(asked, taken_apart(asked.gap(DEFAULT_TOKENS)))

    async def answered(asked: GapRequest, gap: Gap) -> Response:
        if not asked.stream:
            return await replies.known(service, KIND, await service.fill(gap).whole())
        head = await replies.head(service, KIND)

        def piece(text: str, finish_reason: str | None = None) -> replies.Body:
            return head | {"choices": [replies.choice(text, finish_reason, "delta")]}

        def last(found: Completion) -> Sequence[replies.Body]:
            usage = {"choices": [], "usage": replies.usage(found)}
            return [piece("", found.finish_reason), *([head | usage] if asked.includes_usage else ())]

        return await replies.streamed(replies.written(service.fill(gap), piece, last), end=replies.DONE)

    async def model() -> dict[str, Any]:
        name, chat_format = await service.model(), (await service.engine()).chat_format
        sampled = [each.name for each in fields_of(Sampling)] if chat_format else []
        kinds = [kind for kind in MODEL_KINDS if kind != "chat" or chat_format]
        return {
            "id": name,
            "name": name,
            "object": "model",
            "owned_by": "mercury-lsp",
            "created": started,
            "context_length": NEAR_TOKENS + SEGMENT_TOKENS,
            "max_output_length": MAX_TOKENS,
            "input_modalities": ["text"],
            "output_modalities": ["text"],
            "pricing": {"prompt": "0", "completion": "0"},
            "supported_sampling_parameters": ["max_tokens", "stop", *sampled],
            "supported_features": ["tools", "json_mode", "structured_outputs"] if chat_format == "tool_call" else [],
            "supported_endpoints": [f"{kind}.completions" for kind in kinds],
        }

    async def listed(request: Request) -> Response:
        """The model, unless the path asks for a kind of completions that it does not make."""
        found, kind = await model(), request.url.path.split("/")[2]
        is_fit = kind not in MODEL_KINDS or f"{kind}.completions" in found["supported_endpoints"]
        return JSONResponse({"object": "list", "data": [found] if is_fit else []})

    async def one(request: Request) -> Response:
        found, name = await model(), request.path_params["name"]
        if name != found["id"]:
            message = f"there is no model {name!r} here; this server runs {found['id']!r}"
            raise ApiError(404, message, "model", "model_not_found")
        return JSONResponse(found)

    lists = ("/v1/models", *(f"/v1/{kind}/completions/models" for kind in MODEL_KINDS))
    return [
        *(Route(path, listed) for path in lists),
        Route("/v1/models/{name:path}", one),
        Route("/v1/fim/completions", fim, methods=["POST"]),
        Route("/v1/completions", complete, methods=["POST"]),
    ]
