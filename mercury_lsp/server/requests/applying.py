"""Shared by commands that edit a document: the client applies the edit and moves its cursor behind it."""

import logging

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from mercury_lsp.completion.suggestions import Position, Suggestion
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.utf16 import utf16_length
from mercury_lsp.server.server import MercuryServer

logger = logging.getLogger(__name__)

CHANGED_REASON = "the document has changed; ask again"


async def apply(server: MercuryServer, snapshot: Snapshot, suggestion: Suggestion, title: str) -> dict[str, bool]:
    """Have the client insert a suggestion into this version of a document; the command's answer.

    When two commands apply to the same text, the later one does nothing: both may have got the same suggestion.
    """
    applying = server.editor.applying
    if applying.get(snapshot.uri) is snapshot.source:
        return {"applied": False}
    applying[snapshot.uri] = snapshot.source
    try:
        applied = await _is_applied(server, snapshot, suggestion, title)
    finally:
        applying.pop(snapshot.uri, None)
    if applied and server.editor.capabilities.shows_documents:
        await _go_behind(server, snapshot.uri, suggestion)
    return {"applied": applied}


def refused(server: MercuryServer, reason: str) -> dict[str, bool]:
    """Show the user why nothing is applied; the command's answer."""
    server.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"Mercury: {reason}"))
    return {"applied": False}


async def _is_applied(server: MercuryServer, snapshot: Snapshot, suggestion: Suggestion, title: str) -> bool:
    span = types.Range(types.Position(*suggestion.start), types.Position(*suggestion.end))
    edit = types.TextEdit(span, suggestion.text)
    if server.editor.capabilities.takes_versioned_edits:
        document = types.OptionalVersionedTextDocumentIdentifier(snapshot.uri, snapshot.version)
        changes = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, [edit])])
    else:
        changes = types.WorkspaceEdit(changes={snapshot.uri: [edit]})
    try:
        answer = await server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(changes, title))
    except JsonRpcException as error:
        logger.warning("the client did not apply an edit: %s", error)
        return False
    return answer is not None and answer.applied


async def _go_behind(server: MercuryServer, uri: str, suggestion: Suggestion) -> None:
    end = types.Position(*_end(suggestion))
    shown = types.ShowDocumentParams(uri, take_focus=True, selection=types.Range(end, end))
    try:
        await server.window_show_document_async(shown)
    except JsonRpcException as error:
        logger.warning("the client did not move its cursor: %s", error)


def _end(suggestion: Suggestion) -> Position:
    """Where the text ends once it is inserted."""
    *lines, last = suggestion.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    width = utf16_length(last)
    return suggestion.start[0] + len(lines), width if lines else suggestion.start[1] + width
