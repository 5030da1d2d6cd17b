"""Our own routes: whole requests to the engine, and a page to type in and to watch gaps being filled.

A Mercury elsewhere that names this server as its engine sends the requests. The page's script is built from
`editors/playground`.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mercury_engine.api import Control, Effort, Fill, FillRequest, RewriteRequest, SlotView
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mercury_lsp.completion.price import Price
from mercury_lsp.completion.silence import why_silent
from mercury_lsp.engine_host.remote import wire
from mercury_lsp.http import fields, replies
from mercury_lsp.http.errors import bad_request
from mercury_lsp.http.gap import Gap
from mercury_lsp.http.service import Service
from mercury_lsp.plain_data import plain

MAX_BLOCK_CHARS = 2_048
"""Longest block of a context; four times the chunks of another Mercury. The engine remembers thousands of them."""

MAX_TEXT_CHARS = 40_000
"""Longest text of another kind."""

MAX_CANDIDATES, MAX_HUNKS = 8, 256

PAGE = Path(__file__).with_name("page")
"""What `make playground` builds; in a clone it may be missing."""

FILES = ("playground.js", "playground.css")

NOT_BUILT = "The playground is not built. With Node 20 or newer, `make playground` in the clone builds it.\n"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page talks to this server only. CodeMirror adds its styles at run time, under the nonce."""

_SAFE = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


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


@dataclass(frozen=True, slots=True)
class StepsRequest:
    """A gap of the page's document."""

    prompt: str = ""
    suffix: str = ""
    path: str = ""
    effort: Effort = "medium"
    several_lines: bool = False


def routes(service: Service) -> list[Route]:
    async def about(request: Request) -> Response:
        engine = await service.engine()
        edit_format = engine.edit_format or (service.settings.edit_model if service.edits.can_rewrite else None)
        return JSONResponse(plain(wire.About.of(engine, edit_format)))

    async def answer(request: Request) -> Response:
        asked = await fields.read(request, Asked)
        return await replies.streamed(steps_and_answer(service, asked.request(), asked.steps), replies.as_line)

    async def page(request: Request) -> Response:
        try:
            html = (PAGE / "index.html").read_text("utf-8")
        except FileNotFoundError:
            return PlainTextResponse(NOT_BUILT, 404)
        nonce = secrets.token_urlsafe(16)
        headers = {"Content-Security-Policy": POLICY.format(nonce=nonce), "Cache-Control": "no-store"}
        return HTMLResponse(html.replace("{nonce}", nonce), headers=headers | _SAFE)

    async def file(request: Request) -> Response:
        path = PAGE / request.url.path.removeprefix("/")
        if not path.is_file():
            raise HTTPException(404)
        return FileResponse(path, headers=_SAFE | {"Cache-Control": "no-cache"})

    async def steps(request: Request) -> Response:
        """A fill's steps; the answer after them says why an editor would not show it."""
        asked = await fields.read(request, StepsRequest)
        stop = () if asked.several_lines else ("\n",)
        context, _ = Gap(asked.prompt, asked.suffix, asked.path, stop=stop).context()
        if context.on_secret:
            raise bad_request("the line looks like a secret, so it is not completed")
        engine = await service.engine()
        gate = Price().gate(engine.utility, "medium", context.language_id)

        def silence(fill: Fill) -> dict[str, str | None]:
            return {"silence": why_silent(fill.text, fill.confidence, fill.is_finished, context, gate)}

        wanted = replace(context.request(), effort=asked.effort)
        return await replies.streamed(steps_and_answer(service, wanted, True, silence), replies.as_line)

    return [
        Route(wire.PATH, about),
        Route(wire.PATH, answer, methods=["POST"]),
        Route("/mercury/v1/steps", steps, methods=["POST"]),
        Route("/", page),
        *(Route(f"/{name}", file) for name in FILES),
    ]


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
