"""Converts suggestions to the JSON of an InlineCompletionList; other answers share its parts."""

from collections.abc import Iterable
from typing import Any

from lsprotocol import types

from mercury_lsp.completion.suggestions import Position, Suggestion
from mercury_lsp.context.context import MAX_LINE_PREFIX_CHARS
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.utf16 import utf16_length

ACCEPTED_COMMAND = "mercury.accepted"
"""Clients run it when a suggestion is accepted; arguments: its id, and the length if only a part was."""


def to_lsp(suggestions: Iterable[Suggestion], with_confidence: bool) -> dict[str, Any]:
    """The list, without any null, because some clients mistake a null for a value.

    `with_confidence` adds our own field, for clients that know it.
    """
    items = [
        {"insertText": each.text, "range": to_range(each.start, each.end), "command": accepted_command(each)}
        | ({"mercury": _confidence(each)} if with_confidence else {})
        for each in suggestions
    ]
    return {"items": items}


def extending_selected(
    selected: types.SelectedCompletionInfo | None, suggestions: Iterable[Suggestion], snapshot: Snapshot
) -> list[Suggestion]:
    """The suggestions that extend the item selected in the editor's popup, with that item's range."""
    if selected is None:
        return list(suggestions)
    start, end = ((each.line, each.character) for each in (selected.range.start, selected.range.end))
    typed = snapshot.slice(snapshot.offset_at(*start), snapshot.offset_at(*end))
    return [
        each.preceded_by(typed, start)
        for each in suggestions
        if end == each.end and start[0] == end[0] and (typed + each.text).startswith(selected.text)
    ]


def from_line_start(suggestion: Suggestion, snapshot: Snapshot) -> Suggestion:
    """The suggestion, extended to the start of the line: clients made for Copilot's server expect that."""
    line, column = suggestion.start
    if column > MAX_LINE_PREFIX_CHARS:
        return suggestion
    before = snapshot.slice(snapshot.offset_at(line, 0), snapshot.offset_at(line, column))
    return suggestion.preceded_by(before, (line, 0))


def accepted_command(suggestion: Suggestion) -> dict[str, Any]:
    return {"title": "Accepted", "command": ACCEPTED_COMMAND, "arguments": [suggestion.id]}


def to_position(position: Position) -> dict[str, int]:
    line, character = position
    return {"line": line, "character": character}


def to_range(start: Position, end: Position) -> dict[str, Any]:
    return {"start": to_position(start), "end": to_position(end)}


def _confidence(suggestion: Suggestion) -> dict[str, Any]:
    """The model's confidence, and the UTF-16 unit of the text from which it is more likely wrong than right."""
    confidence = {
        "confidence": round(suggestion.confidence, 4),
        "steps": suggestion.steps,
        "elapsedMs": round(suggestion.elapsed_ms, 3),
    }
    if suggestion.unsure_from is not None:
        confidence["unsureFrom"] = utf16_length(suggestion.text[: suggestion.unsure_from])
    return confidence
