"""`/v1/edit/completions` of Mercury's API, and the next edits of Sweep's editor plugins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from mercury_engine.api import REGION_LINES_ABOVE, REGION_LINES_BELOW
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mercury_lsp.documents.utf16 import chars_within, utf16_length
from mercury_lsp.http import edit_prompts, fields, replies
from mercury_lsp.http.errors import bad_request
from mercury_lsp.http.rewriting import EditedDocument, read_diff, rewritten
from mercury_lsp.http.service import Service


@dataclass(frozen=True, slots=True)
class EditRequest:
    messages: tuple[dict[str, Any], ...] = ()
    stream: bool = False


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """The fields of a plugin's request that we use."""

    file_path: str = ""
    file_contents: str = ""
    recent_changes: str = ""
    cursor_position: int = 0
    """In UTF-16 units, like the positions in the reply."""

    def document(self) -> EditedDocument:
        """The lines around the cursor to rewrite."""
        text = self.file_contents
        cursor = chars_within(text, max(0, self.cursor_position))
        lines, line = text.splitlines(keepends=True), text.count("\n", 0, cursor)
        above = max(0, line - REGION_LINES_ABOVE)
        start = sum(map(len, lines[:above]))
        end = start + sum(map(len, lines[above : line + REGION_LINES_BELOW + 1]))
        history = read_diff(self.recent_changes, self.file_path)
        return EditedDocument(text, start, end, self.file_path, cursor, history)


def last_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """The last message's text, with the parts of a list joined. Raises ApiError."""
    if not messages:
        raise bad_request("there are no messages", "messages")
    content = messages[-1].get("content") or ""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text", "") if isinstance(part, Mapping) else part for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise bad_request("a message's content must be a string or a list of text parts", "messages")
    return "".join(texts)


def routes(service: Service) -> list[Route]:
    async def edit(request: Request) -> Response:
        asked = await fields.read(request, EditRequest)
        if (prompt := edit_prompts.mercury(last_text(asked.messages))) is None:
            raise bad_request("the message has no <|code_to_edit|> or no <|current_file_content|>", "messages")
        found = await prompt.answered(request, service)
        if asked.stream:  # Continue, which streams, expects a fence
            found = replace(found, text=f"```\n{found.text}\n\n```")
        return await replies.known(service, "edit.completion", found, asked.stream)

    async def sweep(request: Request) -> Response:
        asked, started = await fields.read(request, SweepRequest), perf_counter()
        document = asked.document()
        found = await replies.while_connected(request, rewritten(service, document))
        lines = [
            {
                "start_index": utf16_length(document.text[: change.edit.start]),
                "end_index": utf16_length(document.text[: change.edit.end]),
                "completion": change.edit.inserted,
                "confidence": round(change.probability, 4),
                "autocomplete_id": replies.new_id("edit"),
                "elapsed_time_ms": round(1000 * (perf_counter() - started)),
                "finish_reason": "stop",
            }
            for change in found.changes[:1]
        ]
        body = b"".join(replies.as_line(line | {"completions": [dict(line)]}) for line in lines)
        return Response(body, media_type="application/x-ndjson")

    return [
        Route("/v1/edit/completions", edit, methods=["POST"]),
        Route("/backend/next_edit_autocomplete", sweep, methods=["POST"]),
    ]
