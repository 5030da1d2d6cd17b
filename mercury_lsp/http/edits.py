"""`/v1/edit/completions` and `/v1/apply/completions` of Mercury's API, and the next edits of Sweep's editor plugins.

To apply a snippet no model is asked: one that leaves code out is merged into the original by its lines. A line such as
`# ... existing code ...` stands for lines of the original, and the lines around it say which.
"""

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from time import perf_counter
from typing import Any

from mercury_engine.api import REGION_LINES_ABOVE, REGION_LINES_BELOW
from mercury_engine.text.lines import lines_of
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mercury_lsp.documents.utf16 import chars_within, utf16_length
from mercury_lsp.http import fields, replies
from mercury_lsp.http.draft import Completion
from mercury_lsp.http.errors import ApiError, bad_request
from mercury_lsp.http.rewriting import EditedDocument, mercury_prompt, read_diff, rewritten, tagged
from mercury_lsp.http.service import Service

MIN_ANCHOR_WORD_CHARS = 3
"""Least letters and digits in a line that is searched for in the original; a lone bracket occurs anywhere."""

LEAST_ALIKE = 0.6
"""Least similarity at which a line beside an anchor counts as a version of the other side's line."""

MAX_LINES = 5_000

MAX_COMPARED_CHARS = 400
"""Longest line that is compared by similarity."""

_LEFT_OUT = re.compile(r"\W*(?:\.\.\.|…)\s*(?:(?:existing|rest|unchanged|remaining|other)\b.*|\W*)", re.IGNORECASE)


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
    turn = ThreadPoolExecutor(1)  # merging many identical lines takes seconds

    async def edit(request: Request) -> Response:
        asked = await fields.read(request, EditRequest)
        if (document := mercury_prompt(last_text(asked.messages))) is None:
            raise bad_request("the message has no <|code_to_edit|> or no <|current_file_content|>", "messages")
        found, _ = await rewritten(service, document)
        if asked.stream:  # Continue, which streams, expects a fence
            found = replace(found, text=f"```\n{found.text}\n\n```")
        return await replies.known(service, "edit.completion", found, asked.stream)

    async def sweep(request: Request) -> Response:
        asked, started = await fields.read(request, SweepRequest), perf_counter()
        document = asked.document()
        _, changes = await rewritten(service, document)
        body = b""
        if changes:
            edit = changes[0].edit
            found = {
                "start_index": utf16_length(document.text[: edit.start]),
                "end_index": utf16_length(document.text[: edit.end]),
                "completion": edit.inserted,
                "confidence": round(changes[0].probability, 4),
                "autocomplete_id": replies.new_id("edit"),
                "elapsed_time_ms": round(1000 * (perf_counter() - started)),
                "finish_reason": "stop",
            }
            body = replies.as_line(found | {"completions": [found]})
        return Response(body, media_type="application/x-ndjson")

    async def apply(request: Request) -> Response:
        asked = await fields.read(request, EditRequest)
        prompt = last_text(asked.messages)
        original, snippet = tagged(prompt, "original_code"), tagged(prompt, "update_snippet")
        if original is None or snippet is None:
            raise bad_request("the message has no <|original_code|> or no <|update_snippet|>", "messages")
        if original.count("\n") + snippet.count("\n") > MAX_LINES:
            raise bad_request(f"the original and the snippet together exceed {MAX_LINES:,} lines", "messages")
        text = await asyncio.get_running_loop().run_in_executor(turn, merged, original, snippet)
        if text is None:
            raise ApiError(422, "the snippet's lines are not in the original; send more lines around the change")
        return await replies.known(service, "chat.completion", Completion(text, "stop"), asked.stream)

    return [
        Route("/v1/edit/completions", edit, methods=["POST"]),
        Route("/v1/apply/completions", apply, methods=["POST"]),
        Route("/backend/next_edit_autocomplete", sweep, methods=["POST"]),
    ]


def merged(original: str, snippet: str) -> str | None:
    """The original with the snippet merged into it; None if the snippet's place is unclear."""
    old, new = lines_of(original), lines_of(snippet)
    parts: list[list[str]] = [[]]
    for line in new:
        if _LEFT_OUT.fullmatch(line.strip()):
            parts.append([])
        else:
            parts[-1].append(line)
    if len(parts) == 1:  # the whole file, or a part that says nothing of what is around it
        if _ends(old) == _ends(new):
            return snippet
        parts = [[], *parts, []]
    text, position = list[str](), 0
    for number, part in enumerate(parts):
        if not any(line.strip() for line in part):
            continue
        if (span := _span(old[position:], part)) is None:
            return None
        start = position + span[0] if number else 0
        end = position + span[1] if number < len(parts) - 1 else len(old)
        text += [*old[position:start], *part]
        position = end
    text += old[position:]
    return "".join(text)


def _ends(lines: Sequence[str]) -> tuple[str, str] | None:
    """The first and the last non-blank line."""
    written = [line.strip() for line in lines if line.strip()]
    return (written[0], written[-1]) if written else None


def _span(old: Sequence[str], part: Sequence[str]) -> tuple[int, int] | None:
    """The lines of the original that a part of the snippet replaces; None if it shares no line with them."""
    matcher = SequenceMatcher(None, _anchors(old, "old"), _anchors(part, "new"), autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    if not blocks:
        return None
    start, first = blocks[0].a, blocks[0].b
    end, last = blocks[-1].a + blocks[-1].size, blocks[-1].b + blocks[-1].size
    while start and first and _is_version(old[start - 1], part[first - 1]):
        start, first = start - 1, first - 1
    while end < len(old) and last < len(part) and _is_version(old[end], part[last]):
        end, last = end + 1, last + 1
    if last < len(part) and _indent(part[last]) > _indent(part[last - 1]):  # the new body of a block
        body = next((at for at in range(end, len(old)) if _indent(old[at]) < _indent(part[last])), len(old))
        end = max(end, len("".join(old[:body]).rstrip().splitlines()))
    return start, end


def _is_version(old: str, new: str) -> bool:
    """Whether one line is a changed version of the other."""
    if old.strip() == new.strip():
        return True
    return len(old) + len(new) <= 2 * MAX_COMPARED_CHARS and SequenceMatcher(None, old, new).ratio() >= LEAST_ALIKE


def _indent(line: str) -> float:
    """Width of a line's indentation; a blank line belongs to every block."""
    return len(line) - len(line.lstrip()) if line.strip() else math.inf


def _anchors(lines: Sequence[str], side: str) -> list[str]:
    """The lines to compare; lines that could stand anywhere match nothing."""
    return [
        line.strip() if sum(map(str.isalnum, line)) >= MIN_ANCHOR_WORD_CHARS else f"{side} {number}\n"
        for number, line in enumerate(lines)
    ]
