"""Sends completions whole or as events, until the client disconnects."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from mercury_lsp.http.draft import Completion
from mercury_lsp.http.errors import ApiError, as_api_error
from mercury_lsp.http.service import Service, Writing

T = TypeVar("T")

Body = Mapping[str, Any]

DONE = b"data: [DONE]\n\n"
"""Ends a stream of OpenAI's kind."""


async def whole(request: Request, writing: Writing, body: Callable[[Completion], Any]) -> Response:
    return JSONResponse(body(await while_connected(request, writing.whole())))


async def streamed(
    request: Request,
    writing: Writing,
    piece: Callable[[str], Body],
    last: Callable[[Completion], list[Body]],
    frame: Callable[[Body], bytes],
    end: bytes = b"",
) -> Response:
    """A completion as events. An error before the first one is raised."""
    pieces = writing.pieces()
    first = await while_connected(request, anext(pieces, None))

    async def events() -> AsyncIterator[bytes]:
        async with aclosing(pieces):
            try:
                if first is not None:
                    yield frame(piece(first))
                async for text in pieces:
                    yield frame(piece(text))
                for each in last(writing.completion):
                    yield frame(each)
            except Exception as error:  # the head is sent, so the error is an event
                yield frame({"error": {"message": str(as_api_error(error)), "type": "server_error"}})
        yield end

    kind = "text/event-stream" if frame is as_event else "application/x-ndjson"
    return StreamingResponse(events(), media_type=kind, headers={"Cache-Control": "no-cache"})


def as_event(body: Body) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def as_line(body: Body) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


async def while_connected(request: Request, awaited: Awaitable[T]) -> T:
    """The awaited result; raises ApiError and cancels it if the client disconnects."""
    work, gone = asyncio.ensure_future(awaited), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ApiError(499, "the client is gone")
        return await work
    finally:
        work.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def known_events(*bodies: Body) -> Response:
    return StreamingResponse(iter((*map(as_event, bodies), DONE)), media_type="text/event-stream")


def known_chat(text: str, usage: Body, stream: bool, head: dict[str, Any]) -> Response:
    """A chat reply whose text is already known."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "delta" if stream else "message": message, "finish_reason": "stop", "logprobs": None}
    if not stream:
        return JSONResponse(head | {"object": "chat.completion", "choices": [choice], "usage": usage})
    return known_events(head | {"object": "chat.completion.chunk", "choices": [choice]})


async def head(service: Service, prefix: str) -> dict[str, Any]:
    """The common fields of OpenAI's replies."""
    return {"id": new_id(prefix), "created": int(time.time()), "model": await service.model()}


def new_id(prefix: str) -> str:
    return f"{prefix}-{uuid4().hex}"


def usage(completion: Completion) -> dict[str, Any]:
    """The tokens of a completion, with the details in both places that clients read."""
    return usage_of(completion.prompt_tokens, completion.cached_tokens, completion.completion_tokens)


def usage_of(prompt: int, cached: int, written: int) -> dict[str, Any]:
    """The same by its numbers."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "reasoning_tokens": 0,
        "cached_input_tokens": cached,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
