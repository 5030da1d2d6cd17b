"""`/mercury/v1/answer`: whole requests to the engine, for a Mercury elsewhere that names this server as its engine."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

from mercury_engine.api import Control, FillRequest, RewriteRequest, SlotView
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp.engine_host.remote import wire
from mercury_lsp.http import fields, replies
from mercury_lsp.http.errors import bad_request
from mercury_lsp.http.service import Service
from mercury_lsp.plain_data import plain

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

    def request(self) -> FillRequest | RewriteRequest:
        """The request. Raises ApiError."""
        given = [each for each in (self.fill, self.rewrite) if each is not None]
        if len(given) != 1:
            raise bad_request("the body must have either fill or rewrite")
        if _is_too_large(given[0]):
            raise bad_request("the request is larger than Mercury sends; install the same version on both sides")
        return given[0]


def _is_too_large(request: FillRequest | RewriteRequest) -> bool:
    blocks, texts = [*request.far, *request.suffix], [request.near]
    if isinstance(request, RewriteRequest):
        texts += [request.text, *(each.removed + each.inserted for each in request.history)]
        count, most = len(request.history), MAX_HUNKS
    else:
        blocks += request.lookup_text
        count, most = request.candidates, MAX_CANDIDATES
    return max(map(len, blocks), default=0) > MAX_BLOCK_CHARS or sum(map(len, texts)) > MAX_TEXT_CHARS or count > most


def routes(service: Service) -> list[Route]:
    async def about(request: Request) -> Response:
        engine = await service.engine()
        edit_format = engine.edit_format or (service.settings.edit_model if service.edits.can_rewrite else None)
        return JSONResponse(plain(wire.About.of(engine, edit_format)))

    async def answer(request: Request) -> Response:
        asked = await fields.read(request, Asked)
        return await replies.streamed(steps_and_answer(service, asked.request(), asked.steps), replies.as_line)

    return [Route(wire.PATH, about), Route(wire.PATH, answer, methods=["POST"])]


async def steps_and_answer(
    service: Service,
    request: FillRequest | RewriteRequest,
    steps: bool,
    more: Callable[[Any], dict[str, Any]] = lambda answer: {},
) -> AsyncGenerator[replies.Body]:
    """The engine's steps, if they are wanted, and its answer with the fields that `more` adds.

    Closing the generator stops the engine.
    """
    loop, seen = asyncio.get_running_loop(), asyncio.Queue[tuple[SlotView, ...] | None]()

    def show(slots: tuple[SlotView, ...]) -> None:
        loop.call_soon_threadsafe(seen.put_nowait, slots)

    answering = asyncio.ensure_future(service.answer(request, Control(on_step=show if steps else None)))
    answering.add_done_callback(lambda _: seen.put_nowait(None))
    try:
        while (slots := await seen.get()) is not None:
            yield {"step": plain(slots)}
        answer = await answering
        yield {"answer": plain(answer) | more(answer)}
    finally:
        answering.cancel()
