"""`/tokenize`, `/detokenize` and `/apply-template` of llama.cpp's server."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mercury_engine.api import Words
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp.http import fields
from mercury_lsp.http.chat import ChatRequest
from mercury_lsp.http.errors import ApiError, bad_request
from mercury_lsp.http.service import Service
from mercury_lsp.http.tool_calls import ToolUse

MAX_CHARS = 400_000
"""Longest text; three times the context of the offered models."""

MAX_TOKENS = 100_000

Part = str | int
"""A text, or a token."""


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
    turn = asyncio.Lock()  # one long text at a time, so that the engine keeps its processors

    async def answered(name: str, answer: Callable[[Words], Any]) -> Response:
        words = (await service.engine()).words
        if words is None:
            raise ApiError(501, "the model runs on another server, which knows its tokens; ask that server", "model")
        async with turn:
            return await asyncio.to_thread(lambda: JSONResponse({name: answer(words)}))

    async def tokenize(request: Request) -> Response:
        return await answered("tokens", (await fields.read(request, TokenizeRequest)).answer)

    async def detokenize(request: Request) -> Response:
        return await answered("content", (await fields.read(request, DetokenizeRequest)).answer)

    async def apply_template(request: Request) -> Response:
        asked = await fields.read(request, ChatRequest)
        chat = asked.conversation(ToolUse.of(asked.tools, asked.tool_choice))
        return await answered("prompt", lambda words: words.prompt(chat))

    return [
        Route("/tokenize", tokenize, methods=["POST"]),
        Route("/detokenize", detokenize, methods=["POST"]),
        Route("/apply-template", apply_template, methods=["POST"]),
    ]


def _bound(size: int, most: int, field: str, things: str) -> None:
    if size > most:
        raise bad_request(f"{field} has {size:,} {things}; at most {most:,} are allowed", field)


def _readable(piece: bytes) -> str | list[int]:
    """The piece as text, or as bytes if it is only a part of a character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return [*piece]
