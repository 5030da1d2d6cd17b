"""The dialect of llama.cpp's server, as llama.vim and llama.vscode speak it."""

from dataclasses import dataclass
from typing import Any

from mercury_engine.prompt.budget import NEAR_TOKENS, SEGMENT_TOKENS
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp import __version__
from mercury_lsp.http import fields, replies
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.gap import GapRequest
from mercury_lsp.http.service import MAX_AT_ONCE, Service
from mercury_lsp.http.templates import taken_apart

DEFAULT_TOKENS = 128


@dataclass(frozen=True, slots=True)
class InfillRequest(GapRequest):
    id_slot: int = -1
    response_fields: tuple[str, ...] = ()


def routes(service: Service) -> list[Route]:
    async def infill(request: Request) -> Response:
        asked = await fields.read(request, InfillRequest)
        gap, model = asked.gap(DEFAULT_TOKENS), await service.model()
        client = request.client.host if request.client is not None else ""
        is_newest = gap.max_tokens > 0 and asked.id_slot >= 0
        writing = service.fill(gap, (client, asked.id_slot) if is_newest else None)

        def body(completion: Completion) -> Any:
            texts = (completion.text, *completion.others)
            found = [_chosen(_reply(completion, text, model), asked.response_fields) for text in texts]
            return found if asked.n_cmpl > 1 else found[0]

        return await replies.whole(request, writing, body)

    async def complete(request: Request) -> Response:
        asked = await fields.read(request, GapRequest)
        model, writing = await service.model(), service.fill(taken_apart(asked.gap(DEFAULT_TOKENS)))
        if not asked.stream:
            return await replies.whole(request, writing, lambda found: _reply(found, found.text, model))
        bodies = replies.written(
            writing,
            lambda text: {"index": 0, "content": text, "stop": False},
            lambda found: [_reply(found, "", model)],
        )
        return await replies.streamed(request, bodies)

    async def props(request: Request) -> Response:
        settings = {"n_ctx": NEAR_TOKENS + SEGMENT_TOKENS}
        about = {"model_path": await service.model(), "total_slots": MAX_AT_ONCE, "build_info": f"v{__version__}"}
        return JSONResponse(about | {"default_generation_settings": settings, "chat_template": ""})

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    return [
        Route("/infill", infill, methods=["POST"]),
        Route("/completion", complete, methods=["POST"]),
        Route("/completions", complete, methods=["POST"]),
        Route("/props", props),
        Route("/health", health),
    ]


def _reply(completion: Completion, text: str, model: str) -> dict[str, Any]:
    read, read_ms = completion.prompt_tokens - completion.cached_tokens, 1000 * completion.read_seconds
    written, written_ms = completion.completion_tokens, 1000 * completion.seconds - read_ms
    return {
        "index": 0,
        "content": text,
        "model": model,
        "stop": True,
        "stop_type": "limit" if completion.finish_reason == "length" else "eos",
        "tokens_predicted": written,
        "tokens_evaluated": completion.prompt_tokens,
        "tokens_cached": completion.cached_tokens,
        "truncated": False,
        "timings": _timings("prompt", read, read_ms) | _timings("predicted", written, written_ms),
    }


def _timings(part: str, tokens: int, milliseconds: float) -> dict[str, float]:
    return {
        f"{part}_n": tokens,
        f"{part}_ms": milliseconds,
        f"{part}_per_token_ms": milliseconds / max(1, tokens),
        f"{part}_per_second": 1000 * tokens / milliseconds if milliseconds else 0.0,
    }


def _chosen(reply: dict[str, Any], wanted: tuple[str, ...]) -> dict[str, Any]:
    """The wanted fields; one with a slash, inside another, under that very name."""
    if not wanted:
        return reply
    chosen = {}
    for name in wanted:
        value: Any = reply
        for part in name.split("/"):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            chosen[name] = value
    return chosen
