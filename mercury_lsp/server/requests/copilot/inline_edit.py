"""textDocument/copilotInlineEdit: the fill at the cursor as an edit, else the last change for another place."""

from dataclasses import replace
from typing import Any

import attrs
from lsprotocol import types
from mercury_engine.errors import Cancelled

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.server.convert import accepted_command, to_range
from mercury_lsp.server.session import MercuryServer


@attrs.define
class VersionedDocument:
    """A document whose uri and version are sent back as they came, for clients compare them."""

    uri: str
    version: int | None = None


@attrs.define
class InlineEditParams:
    """What the request carries."""

    text_document: VersionedDocument
    position: types.Position


async def inline_edit(server: MercuryServer, params: InlineEditParams) -> dict[str, Any]:
    """One edit at most. Never an error for being superseded: one client waits for it, another shows it."""
    uri = params.text_document.uri
    try:
        found, snapshot = await server.suggest(uri, params.position, "edit", automatic=True)
        if not found and server.is_current(snapshot):  # else the next edit would be one of a newer text
            found, snapshot = await server.next_edit(uri, "edit", params.position)
    except Cancelled:
        return {"edits": []}
    return {"edits": [_edit(_with_line_rest(each, snapshot), params.text_document) for each in found]}


def _edit(suggestion: Suggestion, document: VersionedDocument) -> dict[str, Any]:
    version = {} if document.version is None else {"version": document.version}
    return {
        "text": suggestion.text,
        "range": to_range(suggestion.start, suggestion.end),
        "textDocument": {"uri": document.uri} | version,
        "command": accepted_command(suggestion),
    }


def _with_line_rest(suggestion: Suggestion, snapshot: Snapshot) -> Suggestion:
    """At the start of a line the edit takes in all of it: there cursortab drops what stands behind an insertion."""
    line, column = suggestion.end
    offset = snapshot.offset_at(line, column)
    text, start = snapshot.line_at(offset)
    if column or not text:
        return suggestion
    return replace(suggestion, text=suggestion.text + text, end=snapshot.position_at(start + len(text)))
