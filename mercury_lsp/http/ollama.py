"""The part of Ollama's API that completes code: `/api/generate`, and what clients ask before they use it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp.http import fields, replies
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.fim import bounded
from mercury_lsp.http.gap import Gap
from mercury_lsp.http.service import Service
from mercury_lsp.http.templates import taken_apart

DEFAULT_TOKENS = 128

TEMPLATE = "{{ .Prompt }}{{ if .Suffix }}{{ .Suffix }}{{ end }}"
"""Says that a suffix is understood; clients look for its name."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options that are read."""

    num_predict: int = DEFAULT_TOKENS
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OllamaRequest:
    """The fields that are read."""

    prompt: str = ""
    suffix: str = ""
    options: Options = Options()
    stream: bool = True

    def gap(self) -> Gap:
        """The gap to fill."""
        limit = bounded(self.options.num_predict)
        return taken_apart(Gap(self.prompt, self.suffix, max_tokens=limit, stop=self.options.stop))


def routes(service: Service) -> list[Route]:
    started = datetime.now(UTC).isoformat()

    async def generate(request: Request) -> Response:
        asked = await fields.read(request, OllamaRequest)
        head = {"model": await service.model(), "created_at": datetime.now(UTC).isoformat()}
        if not asked.prompt and not asked.suffix:  # clients have a model loaded so
            return JSONResponse(head | {"response": "", "done": True, "done_reason": "load"})
        writing = service.write(asked.gap())
        if not asked.stream:
            return await replies.whole(
                request, writing, lambda completion: head | {"response": completion.text} | _end(completion)
            )

        def piece(text: str) -> replies.Body:
            return head | {"response": text, "done": False}

        def last(completion: Completion) -> list[replies.Body]:
            return [head | {"response": ""} | _end(completion)]

        return await replies.streamed(request, writing, piece, last, replies.as_line)

    async def show(request: Request) -> Response:
        about = {"template": TEMPLATE, "capabilities": ["completion", "insert"], "details": DETAILS, "model_info": {}}
        return JSONResponse(about)

    async def tags(request: Request) -> Response:
        name = await service.model()
        about = {"name": name, "model": name, "modified_at": started, "size": 0, "digest": "", "details": DETAILS}
        return JSONResponse({"models": [about]})

    return [
        Route("/api/generate", generate, methods=["POST"]),
        Route("/api/show", show, methods=["POST"]),
        Route("/api/tags", tags),
    ]


DETAILS: Mapping[str, Any] = {"format": "safetensors", "family": "mercury", "families": ["mercury"]}


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
