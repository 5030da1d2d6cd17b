"""Tabby's API: bodies with `segments` at `/v1/completions`, and what its plugins ask besides."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mercury_lsp import __version__
from mercury_lsp.http import replies
from mercury_lsp.http.gap import ONE_PARAGRAPH, Gap, OtherText
from mercury_lsp.http.rewriting import EditedDocument, read_diff, rewritten
from mercury_lsp.http.service import Service

MAX_TOKENS = 64

NEXT_EDIT = "next_edit_suggestion"


@dataclass(frozen=True, slots=True)
class TabbySnippet:
    filepath: str = ""
    body: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class EditHistory:
    edits_diff: str = ""
    current_version: str = ""


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
            MAX_TOKENS,
            ONE_PARAGRAPH,
        )


async def answered(service: Service, asked: TabbyRequest) -> Response:
    """The completion; the next edit, if that is what the mode says."""
    history, path = asked.segments.edit_history, asked.segments.filepath
    if asked.mode == NEXT_EDIT and history is not None:
        text, hunks = history.current_version, read_diff(history.edits_diff, path)
        found, _ = await rewritten(service, EditedDocument(text, 0, len(text), path, history=hunks))
        mode = NEXT_EDIT
    else:
        found, mode = await service.fill(asked.gap()).whole(), "standard"
    return JSONResponse({"id": replies.new_id("cmpl"), "choices": [{"index": 0, "text": found.text}], "mode": mode})


def routes(service: Service) -> list[Route]:
    async def health(request: Request) -> Response:
        engine = await service.engine()
        version = {"git_describe": f"v{__version__}"}
        return JSONResponse({"model": await service.model(), "device": engine.device, "version": version})

    async def settings(request: Request) -> Response:
        return JSONResponse({"disable_client_side_telemetry": True})

    async def event(request: Request) -> Response:
        return Response()

    return [
        Route("/v1/health", health, methods=["GET", "POST"]),
        Route("/v1beta/server_setting", settings),
        Route("/v1/events", event, methods=["POST"]),
    ]
