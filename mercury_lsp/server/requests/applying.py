"""Shared by commands that edit a document: the client applies the edit and moves its cursor after it."""

import logging
from collections.abc import Mapping, Sequence

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from mercury_lsp.completion.next_edits import EditSite, RenamedDocument
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
    if _is_waiting(server, snapshot):
        return {"applied": False}
    applying[snapshot.uri] = snapshot.source
    try:
        span = types.Range(types.Position(*suggestion.start), types.Position(*suggestion.end))
        applied = await _is_applied(server, {snapshot: [types.TextEdit(span, suggestion.text)]}, title)
    finally:
        applying.pop(snapshot.uri, None)
    if applied and server.editor.capabilities.shows_documents:
        await go_to(server, snapshot.uri, types.Position(*_end(suggestion)))
    return {"applied": applied}


def refused(server: MercuryServer, reason: str) -> dict[str, bool]:
    """Show the user why nothing is applied; the command's answer."""
    server.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"Mercury: {reason}"))
    return {"applied": False}


async def apply_sites(server: MercuryServer, found: Sequence[RenamedDocument], title: str) -> dict[str, bool]:
    """Have the client rename in these versions of documents, all or none; the command's answer.

    It does nothing while one of the documents is waiting for another edit of ours.
    """
    applying = server.editor.applying
    if any(_is_waiting(server, each.snapshot) for each in found):
        return {"applied": False}
    applying |= {each.snapshot.uri: each.snapshot.source for each in found}
    edits = {each.snapshot: [_text_edit(each.snapshot, site) for site in each.sites] for each in found}
    try:
        return {"applied": await _is_applied(server, edits, title)}
    finally:
        for each in found:
            applying.pop(each.snapshot.uri, None)


def _is_waiting(server: MercuryServer, snapshot: Snapshot) -> bool:
    """Whether this text is waiting for another edit of ours."""
    return server.editor.applying.get(snapshot.uri) is snapshot.source


def _text_edit(snapshot: Snapshot, site: EditSite) -> types.TextEdit:
    start, end = (types.Position(*snapshot.position_at(offset)) for offset in (site.start, site.end))
    return types.TextEdit(types.Range(start, end), site.new)


async def _is_applied(server: MercuryServer, edits: Mapping[Snapshot, Sequence[types.TextEdit]], title: str) -> bool:
    """Whether the client made these edits in these versions of documents."""
    if server.editor.capabilities.takes_versioned_edits:
        documents = {each: _identifier(each) for each in edits}
        changes = types.WorkspaceEdit(
            document_changes=[types.TextDocumentEdit(documents[each], own) for each, own in edits.items()]
        )
    else:
        changes = types.WorkspaceEdit(changes={each.uri: own for each, own in edits.items()})
    try:
        answer = await server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(changes, title))
    except JsonRpcException as error:
        logger.warning("the client did not apply an edit: %s", error)
        return False
    return answer is not None and answer.applied


def _identifier(snapshot: Snapshot) -> types.OptionalVersionedTextDocumentIdentifier:
    return types.OptionalVersionedTextDocumentIdentifier(snapshot.uri, snapshot.version)


async def go_to(server: MercuryServer, uri: str, at: types.Position) -> None:
    """Have the client put its cursor somewhere."""
    shown = types.ShowDocumentParams(uri, take_focus=True, selection=types.Range(at, at))
    try:
        await server.window_show_document_async(shown)
    except JsonRpcException as error:
        logger.warning("the client did not move its cursor: %s", error)


def _end(suggestion: Suggestion) -> Position:
    """Where the text ends once it is inserted."""
    *lines, last = suggestion.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    width = utf16_length(last)
    return suggestion.start[0] + len(lines), width if lines else suggestion.start[1] + width
