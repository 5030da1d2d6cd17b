"""Sends completions whole or as events."""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from operator import attrgetter
from typing import Any
from uuid import uuid4

from starlette.responses import JSONResponse, Response, StreamingResponse

from mercury_lsp.http.draft import Completion
from mercury_lsp.http.errors import as_api_error
from mercury_lsp.http.service import Service, Writing

Body = Mapping[str, Any]

DONE = b"data: [DONE]\n\n"
"""Ends a stream of OpenAI's kind."""

IDS = {"text_completion": "cmpl", "chat.completion": "chatcmpl", "edit.completion": "edit"}
"""Prefixes of ids by kind of object."""


async def written(
    writing: Writing,
    piece: Callable[[str], Body],
    last: Callable[[Completion], Sequence[Body]],
    text: Callable[[Completion], str] = attrgetter("text"),
) -> AsyncGenerator[Body]:
    """A completion as a series of bodies; `text` returns the part that clients see."""
    sent = 0
    async with aclosing(writing.pieces()) as pieces:
        async for each in pieces:
            sent += len(each)
            yield piece(each)
    completion = writing.task.result()
    if rest := text(completion)[sent:]:
        yield piece(rest)
    for body in last(completion):
        yield body


def as_event(body: Body) -> bytes:
    return b"data: " + as_line(body) + b"\n"


def as_line(body: Body) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


async def streamed(
    bodies: AsyncGenerator[Body], frame: Callable[[Body], bytes] = as_event, end: bytes = b""
) -> Response:
    """Bodies as they come; closing the reply closes them. An error before the first one is raised."""
    first = await anext(bodies)

    async def frames() -> AsyncIterator[bytes]:
        async with aclosing(bodies):
            try:
                yield frame(first)
                async for body in bodies:
                    yield frame(body)
            except Exception as error:  # the head is sent, so the error is an event
                yield frame({"error": {"message": str(as_api_error(error)), "type": "server_error"}})
        yield end

    kind = "text/event-stream" if frame is as_event else "application/x-ndjson"
    return StreamingResponse(frames(), media_type=kind, headers={"Cache-Control": "no-cache"})


async def head(service: Service, kind: str) -> dict[str, Any]:
    """The common fields of OpenAI's replies."""
    return {"id": new_id(IDS[kind]), "object": kind, "created": int(time.time()), "model": await service.model()}


def new_id(prefix: str) -> str:
    return f"{prefix}-{uuid4().hex}"


def choice(text: str, finish_reason: str | None, place: str = "message", index: int = 0) -> dict[str, Any]:
    """A choice with its text in every place where clients look for it; in a stream `place` is "delta"."""
    message = {"role": "assistant", "content": text}
    return {"index": index, "text": text, place: message, "finish_reason": finish_reason, "logprobs": None}


async def known(service: Service, kind: str, completion: Completion, stream: bool = False) -> Response:
    """The reply with a finished completion, in one piece."""
    begin = await head(service, kind)
    if not stream:
        texts = enumerate((completion.text, *completion.others))
        choices = [choice(text, completion.finish_reason, index=index) for index, text in texts]
        return JSONResponse(begin | {"choices": choices, "usage": usage(completion)})
    chunk = begin | {"choices": [choice(completion.text, completion.finish_reason, "delta")]}
    return StreamingResponse(iter((as_event(chunk), DONE)), media_type="text/event-stream")


def usage(completion: Completion) -> dict[str, Any]:
    """Token counts, with the details in both places that clients read."""
    return {
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
        "total_tokens": completion.prompt_tokens + completion.completion_tokens,
        "reasoning_tokens": 0,
        "cached_input_tokens": completion.cached_tokens,
        "prompt_tokens_details": {"cached_tokens": completion.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
