"""Sweep's next edits: its editor plugins' route, and its models' prompt in `/v1/completions`."""

import re
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from mercury_engine.api import REGION_LINES_ABOVE, REGION_LINES_BELOW, EditHunk
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mercury_lsp.documents.utf16 import chars_within, utf16_length
from mercury_lsp.http import fields, replies
from mercury_lsp.http.rewriting import (
    MAX_DIFF_CHARS,
    MAX_HUNKS,
    EditedDocument,
    applied,
    clean_hunk,
    read_diff,
    rewritten,
)
from mercury_lsp.http.service import Service

SEPARATOR = "<|file_sep|>"

MAX_PARTS = 256
"""Parts of a prompt that are looked at, from the end."""

_NAMED = re.compile(r"(original|current|updated)/(.{0,1000}?)(?::\d{1,9}:\d{1,9})?\n")
_DIFF = re.compile(r"(.{0,1000})(?:\.diff|:\d{1,9}:\d{1,9})")


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """The fields of a plugin's request that are read."""

    file_path: str = ""
    file_contents: str = ""
    recent_changes: str = ""
    cursor_position: int = 0
    """UTF-16 units, as the positions of the reply."""


@dataclass(frozen=True, slots=True)
class SweepPrompt:
    """A prompt of Sweep's models."""

    document: EditedDocument
    prefill: str
    """The beginning of the answer, written by the client."""

    def answer(self, text: str) -> str:
        """The answer after the prefill."""
        return text[len(self.prefill) :] if text.startswith(self.prefill) else self.document.text[len(self.prefill) :]


def routes(service: Service) -> list[Route]:
    """The route of the plugins."""

    async def next_edit(request: Request) -> Response:
        asked, started = await fields.read(request, SweepRequest), perf_counter()
        document = _around_cursor(asked)
        found = await replies.while_connected(request, rewritten(service, document))
        lines = [
            {
                "start_index": utf16_length(document.text[: change.start]),
                "end_index": utf16_length(document.text[: change.end]),
                "completion": change.text,
                "confidence": round(change.probability, 4),
                "autocomplete_id": replies.new_id("edit"),
                "elapsed_time_ms": round(1000 * (perf_counter() - started)),
                "finish_reason": "stop",
            }
            for change in found.changes[:1]
        ]
        body = b"".join(replies.as_line(line | {"completions": [dict(line)]}) for line in lines)
        return Response(body, media_type="application/x-ndjson")

    return [Route("/backend/next_edit_autocomplete", next_edit, methods=["POST"])]


def _around_cursor(asked: SweepRequest) -> EditedDocument:
    text = asked.file_contents
    cursor = chars_within(text, max(0, asked.cursor_position))
    lines = text.splitlines(keepends=True)
    line = text.count("\n", 0, cursor)
    start = sum(map(len, lines[: max(0, line - REGION_LINES_ABOVE)]))
    end = start + sum(map(len, lines[max(0, line - REGION_LINES_ABOVE) : line + REGION_LINES_BELOW + 1]))
    return EditedDocument(text, start, end, asked.file_path, cursor, read_diff(asked.recent_changes, asked.file_path))


def read_prompt(prompt: str) -> SweepPrompt | None:
    """A prompt of Sweep's models; None for any other."""
    parts: dict[str, str] = {}
    history, path = list[EditHunk](), ""
    for each in prompt.rsplit(SEPARATOR, MAX_PARTS)[1:]:
        if named := _NAMED.match(each):
            parts[named[1]], path = each[named.end() :], named[2]
        elif (changed := _changed(each)) is not None:
            history.append(changed)
    if "current" not in parts or "updated" not in parts:
        return None
    text = parts["current"].removesuffix("\n") + "\n"
    cursor = text.find("<|cursor|>")
    text = text.replace("<|cursor|>", "", 1)
    own = tuple(
        clean_hunk(replace(each, path=None if each.path == path else each.path)) for each in history[-MAX_HUNKS:]
    )
    return SweepPrompt(EditedDocument(text, 0, len(text), path, None if cursor < 0 else cursor, own), parts["updated"])


def _changed(part: str) -> EditHunk | None:
    """The change described by a part of a prompt, if any."""
    head, begun, rest = part.partition("\noriginal:\n")
    removed, ended, inserted = rest.partition("updated:\n")
    named = _DIFF.fullmatch(head)
    is_short = len(removed) + len(inserted) <= MAX_DIFF_CHARS
    return EditHunk(0, removed, inserted, named[1]) if named and begun and ended and is_short else None


async def completed(service: Service, prompt: SweepPrompt) -> tuple[str, dict[str, Any]]:
    """The text that follows the prompt, and its usage. Raises what rewriting raises."""
    found = await rewritten(service, prompt.document)
    document = prompt.document
    return prompt.answer(applied(document.text, 0, document.end, found.changes)), found.usage
