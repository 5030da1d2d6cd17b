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
from mercury_lsp.http.fim import MAX_CANDIDATES, bounded
from mercury_lsp.http.gap import Gap, OtherText
from mercury_lsp.http.service import MAX_AT_ONCE, Service
from mercury_lsp.http.templates import taken_apart

DEFAULT_TOKENS = 128


@dataclass(frozen=True, slots=True)
class Extra:
    """A chunk of another file."""

    text: str = ""
    filename: str = ""


@dataclass(frozen=True, slots=True)
class InfillRequest:
    input_prefix: str = ""
    input_suffix: str = ""
    input_extra: tuple[Extra, ...] = ()
    prompt: str = ""
    """The cursor's line up to the cursor."""
    n_predict: int = DEFAULT_TOKENS
    n_cmpl: int = 1
    stop: tuple[str, ...] = ()
    t_max_predict_ms: float | None = None
    id_slot: int = -1
    response_fields: tuple[str, ...] = ()

    def gap(self) -> Gap:
        """The gap to fill; no text around it and no tokens only warms the caches."""
        is_timed = self.t_max_predict_ms is not None and self.t_max_predict_ms > 0
        return Gap(
            self.input_prefix + self.prompt,
            self.input_suffix,
            others=tuple(OtherText(extra.text, extra.filename) for extra in self.input_extra),
            max_tokens=bounded(self.n_predict),
            stop=self.stop,
            deadline_ms=self.t_max_predict_ms if is_timed and self.n_predict else None,
            candidates=max(1, min(self.n_cmpl, MAX_CANDIDATES)),
        )


@dataclass(frozen=True, slots=True)
class LlamaRequest:
    """The fields of `/completion` that are read; the client has put the gap into a template of its own."""

    prompt: str = ""
    n_predict: int = DEFAULT_TOKENS
    stop: tuple[str, ...] = ()
    stream: bool = False

    def gap(self) -> Gap:
        return taken_apart(Gap(self.prompt, max_tokens=bounded(self.n_predict), stop=self.stop))


def routes(service: Service) -> list[Route]:
    async def infill(request: Request) -> Response:
        asked = await fields.read(request, InfillRequest)
        gap = asked.gap()
        client = request.client.host if request.client is not None else ""
        is_newest = gap.max_tokens > 0 and asked.id_slot >= 0
        model = await service.model()
        writing = service.write(gap, (client, asked.id_slot) if is_newest else None)

        def body(completion: Completion) -> Any:
            texts = (completion.text, *completion.others)
            found = [_chosen(_reply(completion, text, model), asked.response_fields) for text in texts]
            return found if asked.n_cmpl > 1 else found[0]

        return await replies.whole(request, writing, body)

    async def complete(request: Request) -> Response:
        asked = await fields.read(request, LlamaRequest)
        model, writing = await service.model(), service.write(asked.gap())
        if not asked.stream:
            return await replies.whole(request, writing, lambda found: _reply(found, found.text, model))

        def piece(text: str) -> replies.Body:
            return {"index": 0, "content": text, "stop": False}

        def last(completion: Completion) -> list[replies.Body]:
            return [_reply(completion, "", model)]

        return await replies.streamed(request, writing, piece, last, replies.as_event)

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
    read_ms, written_ms = (
        1000 * each for each in (completion.read_seconds, completion.seconds - completion.read_seconds)
    )
    read = completion.prompt_tokens - completion.cached_tokens
    return {
        "index": 0,
        "content": text,
        "model": model,
        "stop": True,
        "stop_type": "limit" if completion.finish_reason == "length" else "eos",
        "tokens_predicted": completion.completion_tokens,
        "tokens_evaluated": completion.prompt_tokens,
        "tokens_cached": completion.cached_tokens,
        "truncated": False,
        "timings": {
            "prompt_n": read,
            "prompt_ms": read_ms,
            "prompt_per_token_ms": read_ms / max(1, read),
            "prompt_per_second": 1000 * read / read_ms if read_ms else 0.0,
            "predicted_n": completion.completion_tokens,
            "predicted_ms": written_ms,
            "predicted_per_token_ms": written_ms / max(1, completion.completion_tokens),
            "predicted_per_second": 1000 * completion.completion_tokens / written_ms if written_ms else 0.0,
        },
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
