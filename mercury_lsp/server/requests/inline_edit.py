"""textDocument/copilotInlineEdit: the fill at the cursor as an edit, or else the next edit.

A repeated change that goes on elsewhere precedes a fill: 5 of the first 40 development positions of commits got a fill,
3 of them wrong; in 2 of the 5 the rule for repeated changes makes the whole edit.
"""

from dataclasses import replace
from typing import Any

import attrs
from lsprotocol import types
from mercury_engine.errors import Cancelled

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.server.convert import accepted_command, to_range
from mercury_lsp.server.requests.execute_command import APPLY_ALL_COMMAND, apply_all_title
from mercury_lsp.server.server import MercuryServer


@attrs.define
class OwnParams:
    """Our own parameters, under `mercury`."""

    fills: bool = True
    """Whether a fill at the cursor is wanted too; a client that shows ghost text has it already."""


@attrs.define
class InlineEditParams:
    """The request's parameters. Clients compare the document's uri and version, so they are sent back unchanged."""

    text_document: types.OptionalVersionedTextDocumentIdentifier
    position: types.Position
    mercury: OwnParams = attrs.field(factory=OwnParams)


async def inline_edit(server: MercuryServer, params: InlineEditParams) -> dict[str, Any]:
    """One edit or none; none for a superseded request, because one client shows errors to its user."""
    try:
        found, snapshot = await _find(server, params)
    except Cancelled:
        return {"edits": []}
    takes_source = server.editor.capabilities.takes_source
    return {"edits": [_edit(_with_line_rest(each, snapshot), params.text_document, takes_source) for each in found]}


async def _find(server: MercuryServer, params: InlineEditParams) -> tuple[list[Suggestion], Snapshot]:
    uri, documents = params.text_document.uri, server.session.documents
    asked = documents.snapshot(uri)
    wants_fill = params.mercury.fills and await server.suggester.wants_fill(uri, params.position)
    if not documents.is_current(asked):
        raise Cancelled("the text changed while it was parsed")
    if wants_fill:
        found, snapshot = await server.suggester.suggest(uri, params.position, "edit", automatic=True)
        if found or not documents.is_current(snapshot):  # a next edit would belong to a newer text
            return found, snapshot
    return await server.suggester.next_edit(uri, "edit", params.position)


def _edit(
    suggestion: Suggestion, asked: types.OptionalVersionedTextDocumentIdentifier, takes_source: bool
) -> dict[str, Any]:
    """The edit, perhaps in another document than the one asked about, where a renaming is finished."""
    own = dict[str, Any]()
    if (renaming := suggestion.renaming) is not None:
        command = {"command": APPLY_ALL_COMMAND, "arguments": [{"textDocument": _named(asked)}]}
        own = {"label": renaming.label, "number": renaming.made + 1, "total": renaming.total}
        own |= {"remaining": renaming.remaining, "applyAll": {"title": apply_all_title(renaming), **command}}
    if takes_source:
        own["source"] = suggestion.source
    return {
        "text": suggestion.text,
        "range": to_range(suggestion.start, suggestion.end),
        "textDocument": _named(suggestion.elsewhere or asked),
        "command": accepted_command(suggestion),
    } | ({"mercury": own} if own else {})


def _named(document: types.OptionalVersionedTextDocumentIdentifier | Snapshot) -> dict[str, Any]:
    return {"uri": document.uri} | ({} if document.version is None else {"version": document.version})


def _with_line_rest(suggestion: Suggestion, snapshot: Snapshot) -> Suggestion:
    """At the start of a line the edit covers the whole line: cursortab drops the text after an insertion there."""
    line, column = suggestion.end
    offset = snapshot.offset_at(line, column)
    text, start = snapshot.line_at(offset)
    if column or not text:
        return suggestion
    return replace(suggestion, text=suggestion.text + text, end=snapshot.position_at(start + len(text)))
