"""`/v1/completions`: OpenAI's with a suffix or with a model's own template in the prompt, and Tabby's."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp import __version__
from mercury_lsp.http import fields, replies, sweep
from mercury_lsp.http.errors import bad_request
from mercury_lsp.http.fim import (
    BLANK_SUFFIX,
    MAX_CANDIDATES,
    ONE_PARAGRAPH,
    StreamableRequest,
    answered,
    bounded,
    text_reply,
)
from mercury_lsp.http.gap import Gap, OtherText
from mercury_lsp.http.rewriting import EditedDocument, applied, read_diff, rewritten
from mercury_lsp.http.service import Service
from mercury_lsp.http.templates import taken_apart

DEFAULT_TOKENS = 256

TABBY_TOKENS = 64

NEXT_EDIT = "next_edit_suggestion"


@dataclass(frozen=True, slots=True)
class CompletionRequest(StreamableRequest):
    """The fields that are read; a list of prompts may have one."""

    prompt: tuple[str, ...] = ()
    suffix: str = ""
    max_tokens: int = DEFAULT_TOKENS
    stop: tuple[str, ...] = ()
    n: int = 1
    echo: bool = False
    logprobs: int | None = None

    def gap(self) -> Gap:
        """The gap to fill. Raises ApiError."""
        for name in ("echo", "logprobs"):
            if getattr(self, name):
                raise bad_request(f"{name} is not supported here; leave it out", name)
        if len(self.prompt) != 1:
            raise bad_request("prompt has to be a text, or a list of one", "prompt")
        gap = Gap(
            self.prompt[0],
            "" if self.suffix == BLANK_SUFFIX else self.suffix,
            max_tokens=bounded(self.max_tokens),
            stop=self.stop,
            candidates=max(1, min(self.n, MAX_CANDIDATES)),
        )
        return taken_apart(gap)


@dataclass(frozen=True, slots=True)
class TabbySnippet:
    filepath: str = ""
    body: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class EditHistory:
    edits_diff: str = ""
    current_version: str = ""

    def document(self, path: str) -> EditedDocument:
        """The lines to rewrite."""
        text = self.current_version
        return EditedDocument(text, 0, len(text), path, history=read_diff(self.edits_diff, path))


@dataclass(frozen=True, slots=True)
class Segments:
    prefix: str = ""
    suffix: str = ""
    filepath: str = ""
    declarations: tuple[TabbySnippet, ...] = ()
    relevant_snippets_from_changed_files: tuple[TabbySnippet, ...] = ()
    relevant_snippets_from_recently_opened_files: tuple[TabbySnippet, ...] = ()
    edit_history: EditHistory | None = None


@dataclass(frozen=True, slots=True)
class TabbyRequest:
    segments: Segments
    language: str = ""
    mode: str = "standard"

    def gap(self) -> Gap:
        """The gap to fill; declarations are the most important."""
        asked = self.segments
        snippets = (*asked.relevant_snippets_from_recently_opened_files, *asked.relevant_snippets_from_changed_files)
        others = (*sorted(snippets, key=lambda each: each.score), *asked.declarations)
        return Gap(
            asked.prefix,
            asked.suffix,
            asked.filepath,
            self.language,
            tuple(OtherText(each.body, each.filepath) for each in others),
            TABBY_TOKENS,
            ONE_PARAGRAPH,
        )


def routes(service: Service) -> list[Route]:
    async def complete(request: Request) -> Response:
        body = await fields.read_object(request)
        if body.get("segments") is not None:
            return await tabby(request, fields.structured(body, TabbyRequest))
        asked = fields.structured(body, CompletionRequest)
        if (prompt := sweep.read_prompt("".join(asked.prompt))) is not None:
            text, usage = await replies.while_connected(request, sweep.completed(service, prompt))
            return await text_reply(service, text, usage, asked.stream)
        return await answered(request, service, asked.gap(), asked.stream, asked.includes_usage)

    async def tabby(request: Request, asked: TabbyRequest) -> Response:
        if asked.segments.edit_history is not None and asked.mode == NEXT_EDIT:
            document = asked.segments.edit_history.document(asked.segments.filepath)
            found = await replies.while_connected(request, rewritten(service, document))
            text = applied(document.text, 0, document.end, found.changes)
            return JSONResponse(
                {"id": replies.new_id("cmpl"), "choices": [{"index": 0, "text": text}], "mode": NEXT_EDIT}
            )
        writing = service.write(asked.gap())
        head = {"id": replies.new_id("cmpl"), "mode": "standard"}
        return await replies.whole(
            request, writing, lambda completion: head | {"choices": [{"index": 0, "text": completion.text}]}
        )

    async def health(request: Request) -> Response:
        engine = await service.engine()
        version = {"git_describe": f"v{__version__}"}
        return JSONResponse({"model": await service.model(), "device": engine.device, "version": version})

    async def settings(request: Request) -> Response:
        return JSONResponse({"disable_client_side_telemetry": True})

    async def event(request: Request) -> Response:
        return Response()

    return [
        Route("/v1/completions", complete, methods=["POST"]),
        Route("/v1/health", health, methods=["GET", "POST"]),
        Route("/v1beta/server_setting", settings),
        Route("/v1/events", event, methods=["POST"]),
    ]
