"""`/mercury/v1/answer`: whole requests to the engine, for a Mercury elsewhere that names this server as its engine."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from mercury_engine.api import Control, FillRequest, RewriteRequest, SlotView
from mercury_engine.api import Request as EngineRequest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from mercury_lsp.engine_host.remote import wire
from mercury_lsp.http import fields, replies
from mercury_lsp.http.errors import as_api_error, bad_request
from mercury_lsp.http.service import Service

MAX_BLOCK_CHARS = 2_048
"""Longest block of a context; four times the chunks of another Mercury. The engine remembers thousands of them."""

MAX_TEXT_CHARS = 40_000
"""Longest text of another kind."""

MAX_CANDIDATES, MAX_HUNKS = 8, 256


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of either kind."""

    fill: FillRequest | None = None
    rewrite: RewriteRequest | None = None
    steps: bool = False

    def request(self) -> EngineRequest:
        """The request. Raises ApiError."""
        given = [each for each in (self.fill, self.rewrite) if each is not None]
        if len(given) != 1:
            raise bad_request("the body has to hold either fill or rewrite")
        request = given[0]
        blocks, texts, counts = _sizes(request)
        if max(map(len, blocks), default=0) > MAX_BLOCK_CHARS or sum(map(len, texts)) > MAX_TEXT_CHARS or counts:
            raise bad_request("the request is larger than any of another Mercury; install the same version there")
        return request


def _sizes(request: FillRequest | RewriteRequest) -> tuple[Sequence[str], Sequence[str], bool]:
    """The context's blocks, the other texts, and whether there is too much of anything else."""
    if isinstance(request, RewriteRequest):
        texts = [request.text, request.near, *(each.removed + each.inserted for each in request.history)]
        return (*request.far, *request.suffix), texts, len(request.history) > MAX_HUNKS
    blocks = (*request.far, *request.suffix, *request.lookup_text)
    return blocks, (request.near,), request.candidates > MAX_CANDIDATES


def routes(service: Service) -> list[Route]:
    async def about(request: Request) -> Response:
        engine = await service.engine()
        edit_format = engine.edit_format or (service.settings.edit_model if service.edits.can_rewrite else None)
        return JSONResponse(wire.plain(wire.About.of(engine, edit_format)))

    async def answer(request: Request) -> Response:
        asked = await fields.read(request, Asked)
        return await streamed(request, service, asked.request(), asked.steps)

    return [Route(wire.PATH, about), Route(wire.PATH, answer, methods=["POST"])]


async def streamed(
    request: Request,
    service: Service,
    asked: EngineRequest,
    steps: bool,
    more: Callable[[Any], dict[str, Any]] = lambda answer: {},
) -> Response:
    """The engine's answer as lines of JSON, after its steps if they are wanted. Raises ApiError.

    more: fields to add to the answer's.
    """
    lines = _lines(service, asked, steps, more)
    first = await replies.while_connected(request, anext(lines))

    async def body() -> AsyncIterator[bytes]:
        async with aclosing(lines):
            yield first
            async for line in lines:
                yield line

    return StreamingResponse(body(), media_type="application/x-ndjson")


async def _lines(
    service: Service, request: EngineRequest, steps: bool, more: Callable[[Any], dict[str, Any]]
) -> AsyncGenerator[bytes]:
    """The reply's lines; closing the generator stops the engine. An error before the first line is raised."""
    loop, seen = asyncio.get_running_loop(), asyncio.Queue[tuple[SlotView, ...] | None]()

    def show(slots: tuple[SlotView, ...]) -> None:
        loop.call_soon_threadsafe(seen.put_nowait, slots)

    control, has_begun = Control(on_step=show if steps else None), False
    answering = asyncio.ensure_future(service.answer(request, control))
    answering.add_done_callback(lambda _: seen.put_nowait(None))
    try:
        while (slots := await seen.get()) is not None:
            has_begun = True
            yield replies.as_line({"step": wire.plain(slots)})
        answer = await answering
        yield replies.as_line({"answer": wire.plain(answer) | more(answer)})
    except Exception as error:
        if not has_begun:
            raise
        yield replies.as_line({"error": {"message": str(as_api_error(error))}})
    finally:
        answering.cancel()
