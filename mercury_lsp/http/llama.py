"""The dialect of llama.cpp's server, as llama.vim and llama.vscode speak it: gaps, tokens and chat templates."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from mercury_engine.api import Words
from mercury_engine.prompt.layout import NEAR_TOKENS, SEGMENT_TOKENS
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp import __version__
from mercury_lsp.http import fields, replies
from mercury_lsp.http.chat import ChatRequest, ToolUse
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.errors import ApiError, bad_request
from mercury_lsp.http.gap import GapRequest
from mercury_lsp.http.service import MAX_AT_ONCE, Service
from mercury_lsp.http.templates import taken_apart

DEFAULT_TOKENS = 128

MAX_CHARS = 400_000
"""Longest text; three times the context of the offered models."""

MAX_TOKENS = 100_000

Part = str | int
"""A text, or a token."""


@dataclass(frozen=True, slots=True)
class InfillRequest(GapRequest):
    id_slot: int = -1
    response_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenizeRequest:
    content: Any = ""
    """A text, or a list of texts and tokens."""
    add_special: bool = False
    parse_special: bool = True
    with_pieces: bool = False

    def parts(self) -> list[Part]:
        """What to tokenize. Raises ApiError."""
        parts = self.content if isinstance(self.content, list) else [self.content]
        if not all(isinstance(part, str | int) and not isinstance(part, bool) for part in parts):
            raise bad_request("content must be a string or a list of strings and tokens", "content")
        _bound(sum(1 if isinstance(part, int) else len(part) for part in parts), MAX_CHARS, "content", "characters")
        return parts

    def answer(self, words: Words) -> list[Any]:
        """The tokens, with the text of each if that is wanted."""
        tokens, begun = list[int](), self.add_special
        for part in self.parts():
            tokens += [part] if isinstance(part, int) else words.tokens(part, self.parse_special, begun)
            begun = False
        if not self.with_pieces:
            return tokens
        _bound(len(tokens), MAX_TOKENS, "content", "tokens")
        return [{"id": token, "piece": _readable(words.piece(token))} for token in tokens]


@dataclass(frozen=True, slots=True)
class DetokenizeRequest:
    tokens: tuple[int, ...] = ()

    def answer(self, words: Words) -> str:
        """The tokens' text. Raises ApiError."""
        _bound(len(self.tokens), MAX_CHARS, "tokens", "tokens")
        return words.text(self.tokens)


def routes(service: Service) -> list[Route]:
    turn = ThreadPoolExecutor(1)  # one long text at a time, so that the engine keeps its processors

    async def infill(request: Request) -> Response:
        asked = await fields.read(request, InfillRequest)
        gap, model = asked.gap(DEFAULT_TOKENS), await service.model()
        client = request.client.host if request.client is not None else ""
        is_newest = gap.max_tokens > 0 and asked.id_slot >= 0
        writing = service.fill(gap, (client, asked.id_slot) if is_newest else None)
        completion = await writing.whole()
        texts = (completion.text, *completion.others)
        found = [_chosen(_reply(completion, text, model), asked.response_fields) for text in texts]
        return JSONResponse(found if asked.n_cmpl > 1 else found[0])

    async def complete(request: Request) -> Response:
        asked = await fields.read(request, GapRequest)
        model, writing = await service.model(), service.fill(taken_apart(asked.gap(DEFAULT_TOKENS)))
        if not asked.stream:
            found = await writing.whole()
            return JSONResponse(_reply(found, found.text, model))
        bodies = replies.written(
            writing,
            lambda text: {"index": 0, "content": text, "stop": False},
            lambda found: [_reply(found, "", model)],
        )
        return await replies.streamed(bodies)

    async def props(request: Request) -> Response:
        settings = {"n_ctx": NEAR_TOKENS + SEGMENT_TOKENS}
        about = {"model_path": await service.model(), "total_slots": MAX_AT_ONCE, "build_info": f"v{__version__}"}
        return JSONResponse(about | {"default_generation_settings": settings, "chat_template": ""})

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def answered(name: str, answer: Callable[[Words], Any]) -> Response:
        words = (await service.engine()).words
        if words is None:
            raise ApiError(501, "the model runs on another server, which knows its tokens; ask that server", "model")
        return await asyncio.get_running_loop().run_in_executor(turn, lambda: JSONResponse({name: answer(words)}))

    async def tokenize(request: Request) -> Response:
        return await answered("tokens", (await fields.read(request, TokenizeRequest)).answer)

    async def detokenize(request: Request) -> Response:
        return await answered("content", (await fields.read(request, DetokenizeRequest)).answer)

    async def apply_template(request: Request) -> Response:
        asked = await fields.read(request, ChatRequest)
        chat = asked.conversation(ToolUse.of(asked.tools, asked.tool_choice))
        return await answered("prompt", lambda words: words.prompt(chat))

    return [
        Route("/infill", infill, methods=["POST"]),
        Route("/completion", complete, methods=["POST"]),
        Route("/completions", complete, methods=["POST"]),
        Route("/props", props),
        Route("/health", health),
        Route("/tokenize", tokenize, methods=["POST"]),
        Route("/detokenize", detokenize, methods=["POST"]),
        Route("/apply-template", apply_template, methods=["POST"]),
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


def _bound(size: int, most: int, field: str, things: str) -> None:
    if size > most:
        raise bad_request(f"{field} has {size:,} {things}; at most {most:,} are allowed", field)


def _readable(piece: bytes) -> str | list[int]:
    """The piece as text, or as bytes if it is only a part of a character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return [*piece]
