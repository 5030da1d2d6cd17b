"""`/`: a page to type in and to watch gaps being filled. Its script is built from `editors/playground`."""

import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from mercury_engine.api import Effort, Fill
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from mercury_lsp.completion.price import Price
from mercury_lsp.completion.silence import why_silent
from mercury_lsp.context.context import CompletionContext
from mercury_lsp.http import answers, fields, replies
from mercury_lsp.http.errors import bad_request
from mercury_lsp.http.gap import Gap
from mercury_lsp.http.service import Service

PAGE = Path(__file__).with_name("page")
"""What `make playground` builds; in a clone it may be missing."""

FILES = ("playground.js", "playground.css")

NOT_BUILT = "The playground is not built. With Node 20 or newer, `make playground` in the clone builds it.\n"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page talks to this server only. CodeMirror adds its styles at run time, under the nonce."""


@dataclass(frozen=True, slots=True)
class StepsRequest:
    """A gap of the page's document."""

    prompt: str = ""
    suffix: str = ""
    path: str = ""
    effort: Effort = "medium"
    several_lines: bool = False

    def context(self) -> CompletionContext:
        """The context for the engine, without secrets. Raises ApiError if the line looks like one."""
        stop = () if self.several_lines else ("\n",)
        context, _ = Gap(self.prompt, self.suffix, self.path, stop=stop).context()
        if context.on_secret:
            raise bad_request("the line looks like a secret, so it is not completed")
        return context


def routes(service: Service) -> list[Route]:
    """The page, its files, and the steps of a fill as lines of JSON; the last says why an editor would not show it."""

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
        asked = await fields.read(request, StepsRequest)
        context, engine = asked.context(), await service.engine()
        gate = Price().gate(engine.utility, "medium", context.language_id)

        def silence(fill: Fill) -> dict[str, str | None]:
            return {"silence": why_silent(fill.text, fill.confidence, fill.is_finished, context, gate)}

        wanted = replace(context.request(), effort=asked.effort)
        return await replies.streamed(answers.steps_and_answer(service, wanted, True, silence), replies.as_line)

    its_files = [Route(f"/{name}", file) for name in FILES]
    return [Route("/", page), *its_files, Route("/mercury/v1/steps", steps, methods=["POST"])]


_SAFE = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
