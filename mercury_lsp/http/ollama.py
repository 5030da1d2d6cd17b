"""Ollama's `/api/generate` and `/api/chat`, and what clients request before they use them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp import __version__
from mercury_lsp.http import fields, replies
from mercury_lsp.http.chat import ChatRequest, Share, Temperature, ToolUse, TopK
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.gap import GapRequest
from mercury_lsp.http.service import Service, Writing
from mercury_lsp.http.templates import taken_apart

DEFAULT_TOKENS = 128

TEMPLATE = "{{ .Prompt }}{{ if .Suffix }}{{ .Suffix }}{{ end }}"
"""Tells clients that a suffix is supported; they search for its name."""

LOADED = {"done": True, "done_reason": "load"}
"""The reply to a request that only loads the model."""

NEVER = "9999-12-31T23:59:59Z"
"""When a loaded model is unloaded."""

DETAILS: Mapping[str, Any] = {"format": "safetensors", "family": "mercury", "families": ["mercury"]}


@dataclass(frozen=True, slots=True)
class OllamaRequest(GapRequest):
    stream: bool = True


@dataclass(frozen=True, slots=True)
class OllamaChat(ChatRequest):
    temperature: Temperature = 0.8
    top_p: Share = 0.9
    top_k: TopK = 40
    stream: bool = True


def routes(service: Service) -> list[Route]:
    started = datetime.now(UTC).isoformat()

    async def chat(request: Request) -> Response:
        asked, use = await fields.read(request, OllamaChat, inner="options"), ToolUse()
        if not asked.messages:
            return await loaded(_message)
        writing = service.generate(asked.request(use), use.settled if asked.stream else None)
        return await answered(writing, asked.stream, _message)

    async def generate(request: Request) -> Response:
        asked = await fields.read(request, OllamaRequest, inner="options")
        gap = taken_apart(asked.gap(DEFAULT_TOKENS))
        if not gap.prompt and not gap.suffix:
            return await loaded(_response)
        return await answered(service.fill(gap), asked.stream, _response)

    async def loaded(place: Callable[[str], dict[str, Any]]) -> Response:
        return JSONResponse(await head() | place("") | LOADED)

    async def answered(writing: Writing, stream: bool, place: Callable[[str], dict[str, Any]]) -> Response:
        """The reply, whole or piece by piece; `place` puts a text where clients look for it."""
        begin = await head()
        if not stream:
            found = await writing.whole()
            return JSONResponse(begin | place(found.text) | _end(found))
        bodies = replies.written(
            writing,
            lambda text: begin | place(text) | {"done": False},
            lambda found: [begin | place("") | _end(found)],
        )
        return await replies.streamed(bodies, replies.as_line)

    async def head() -> dict[str, Any]:
        return {"model": await service.model(), "created_at": datetime.now(UTC).isoformat()}

    async def show(request: Request) -> Response:
        can_chat = (await service.engine()).chat_format is not None
        capabilities = ["completion", "insert", *(["chat"] if can_chat else ())]
        return JSONResponse({"template": TEMPLATE, "capabilities": capabilities, "details": DETAILS, "model_info": {}})

    async def about() -> dict[str, Any]:
        name = await service.model()
        return {"name": name, "model": name, "size": 0, "digest": "", "details": DETAILS}

    async def tags(request: Request) -> Response:
        return JSONResponse({"models": [await about() | {"modified_at": started}]})

    async def running(request: Request) -> Response:
        models = [await about() | {"expires_at": NEVER, "size_vram": 0}] if service.is_loaded else []
        return JSONResponse({"models": models})

    async def version(request: Request) -> Response:
        return JSONResponse({"version": __version__})

    return [
        Route("/api/chat", chat, methods=["POST"]),
        Route("/api/generate", generate, methods=["POST"]),
        Route("/api/show", show, methods=["POST"]),
        Route("/api/tags", tags),
        Route("/api/ps", running),
        Route("/api/version", version),
    ]


def _message(text: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}}


def _response(text: str) -> dict[str, Any]:
    return {"response": text}


def _end(completion: Completion) -> dict[str, Any]:
    """How a completion ended; times are in nanoseconds."""
    whole, read = (round(1e9 * each) for each in (completion.seconds, completion.read_seconds))
    return {
        "done": True,
        "done_reason": "length" if completion.finish_reason == "length" else "stop",
        "total_duration": whole,
        "load_duration": 0,
        "prompt_eval_count": completion.prompt_tokens,
        "prompt_eval_duration": read,
        "eval_count": completion.completion_tokens,
        "eval_duration": whole - read,
    }
