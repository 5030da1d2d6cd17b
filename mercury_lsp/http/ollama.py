"""The part of Ollama's API that writes: `/api/generate`, `/api/chat`, and what clients ask before they use them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp import __version__
from mercury_lsp.http import fields, replies
from mercury_lsp.http.chat import ChatRequest
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.fim import bounded
from mercury_lsp.http.gap import Gap
from mercury_lsp.http.generations import Generations
from mercury_lsp.http.service import Service, Writing
from mercury_lsp.http.templates import taken_apart
from mercury_lsp.http.tool_calls import ToolUse

DEFAULT_TOKENS = 128

TEMPLATE = "{{ .Prompt }}{{ if .Suffix }}{{ .Suffix }}{{ end }}"
"""Says that a suffix is understood; clients look for its name."""


@dataclass(frozen=True, slots=True)
class Options:
    num_predict: int = DEFAULT_TOKENS
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OllamaRequest:
    prompt: str = ""
    suffix: str = ""
    options: Options = Options()
    stream: bool = True

    def gap(self) -> Gap:
        limit = bounded(self.options.num_predict)
        return taken_apart(Gap(self.prompt, self.suffix, max_tokens=limit, stop=self.options.stop))


@dataclass(frozen=True, slots=True)
class ChatOptions(Options):
    num_predict: int = -1
    temperature: float = 0.8
    top_p: float = 0.9
    top_k: int = 40
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class OllamaChat:
    messages: tuple[dict[str, Any], ...] = ()
    options: ChatOptions = ChatOptions()
    stream: bool = True

    def chat(self) -> ChatRequest:
        """The same as OpenAI's clients ask it."""
        asked = self.options
        return ChatRequest(
            messages=self.messages,
            n_predict=asked.num_predict,
            temperature=asked.temperature,
            top_p=asked.top_p,
            top_k=asked.top_k,
            seed=asked.seed,
            stop=asked.stop,
        )


def routes(service: Service) -> list[Route]:
    started = datetime.now(UTC).isoformat()
    generations = Generations(service)

    async def head() -> dict[str, Any]:
        return {"model": await service.model(), "created_at": datetime.now(UTC).isoformat()}

    async def chat(request: Request) -> Response:
        asked, use = await fields.read(request, OllamaChat), ToolUse.of((), None)
        begin = await head()
        if not asked.messages:
            return JSONResponse(begin | _message("") | LOADED)
        writing = generations.write(asked.chat().request(use), use.settled if asked.stream else None)
        return await _answered(request, writing, asked.stream, begin, _message)

    async def generate(request: Request) -> Response:
        asked = await fields.read(request, OllamaRequest)
        begin = await head()
        if not asked.prompt and not asked.suffix:  # clients have a model loaded so
            return JSONResponse(begin | _response("") | LOADED)
        return await _answered(request, service.write(asked.gap()), asked.stream, begin, _response)

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
        loaded = [await about() | {"expires_at": NEVER, "size_vram": 0}] if service.is_loaded else []
        return JSONResponse({"models": loaded})

    async def version(request: Request) -> Response:
        return JSONResponse({"version": __version__})

    return [
        Route("/api/chat", chat, methods=["POST"]),
        Route("/api/ps", running),
        Route("/api/version", version),
        Route("/api/generate", generate, methods=["POST"]),
        Route("/api/show", show, methods=["POST"]),
        Route("/api/tags", tags),
    ]


async def _answered(
    request: Request, writing: Writing, stream: bool, head: dict[str, Any], body: Callable[[str], dict[str, Any]]
) -> Response:
    """The reply with what is written, whole or piece by piece; `body` puts a text where clients look for it."""
    if not stream:
        return await replies.whole(request, writing, lambda found: head | body(found.text) | _end(found))
    sent = list[str]()

    def piece(text: str) -> replies.Body:
        sent.append(text)
        return head | body(text) | {"done": False}

    def last(found: Completion) -> list[replies.Body]:
        rest = found.text[len("".join(sent)) :]
        return [*([piece(rest)] if rest else ()), head | body("") | _end(found)]

    return await replies.streamed(request, writing, piece, last, replies.as_line)


def _message(text: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}}


def _response(text: str) -> dict[str, Any]:
    return {"response": text}


LOADED = {"done": True, "done_reason": "load"}
"""What is said of a request that only loads the model."""

NEVER = "9999-12-31T23:59:59Z"
"""When a loaded model is unloaded."""

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
