"""Has the client apply edits and move its cursor, for commands."""

import logging
from collections.abc import Sequence

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from mercury_lsp.completion.next_edits import EditSite
from mercury_lsp.completion.suggestions import Position, Suggestion
from mercury_lsp.documents.chunked_text import with_plain_breaks
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.utf16 import utf16_length
from mercury_lsp.server.server import MercuryServer

logger = logging.getLogger(__name__)

CHANGED_REASON = "the document has changed; ask again"


async def apply(server: MercuryServer, snapshot: Snapshot, suggestion: Suggestion, title: str) -> dict[str, bool]:
    """Have the client insert a suggestion into this version of a document; the command's answer."""
    span = types.Range(types.Position(*suggestion.start), types.Position(*suggestion.end))
    applied = await make_edits(server, snapshot, [types.TextEdit(span, suggestion.text)], title)
    if applied and server.editor.capabilities.shows_documents:
        await go_to(server, snapshot.uri, types.Position(*_end(suggestion)))
    return {"applied": applied}


def refused(server: MercuryServer, reason: str) -> dict[str, bool]:
    """Tell the user why nothing is applied; the command's answer."""
    server.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"Mercury: {reason}"))
    return {"applied": False}


def text_edit(snapshot: Snapshot, site: EditSite) -> types.TextEdit:
    """The edit of one place."""
    start, end = (types.Position(*snapshot.position_at(offset)) for offset in (site.start, site.end))
    return types.TextEdit(types.Range(start, end), site.new)


async def make_edits(server: MercuryServer, snapshot: Snapshot, edits: Sequence[types.TextEdit], title: str) -> bool:
    """Have the client make edits in this version of a document; returns whether it did.

    The later of two commands for the same text does nothing: both may have the same suggestion.
    """
    applying = server.editor.applying
    if applying.get(snapshot.uri) is snapshot.source:
        return False
    applying[snapshot.uri] = snapshot.source
    if server.editor.capabilities.takes_versioned_edits:
        document = types.OptionalVersionedTextDocumentIdentifier(snapshot.uri, snapshot.version)
        changes = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, edits)])
    else:
        changes = types.WorkspaceEdit(changes={snapshot.uri: edits})
    try:
        answer = await server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(changes, title))
    except JsonRpcException as error:
        logger.warning("the client did not apply an edit: %s", error)
        return False
    finally:
        if applying.get(snapshot.uri) is snapshot.source:  # not that of a later command, for the text after this edit
            del applying[snapshot.uri]
    return answer is not None and answer.applied


async def go_to(server: MercuryServer, uri: str, at: types.Position) -> None:
    """Have the client put its cursor somewhere."""
    shown = types.ShowDocumentParams(uri, take_focus=True, selection=types.Range(at, at))
    try:
        await server.window_show_document_async(shown)
    except JsonRpcException as error:
        logger.warning("the client did not move its cursor: %s", error)


def _end(suggestion: Suggestion) -> Position:
    """Where the text ends once it is inserted."""
    *lines, last = with_plain_breaks(suggestion.text).split("\n")
    width = utf16_length(last)
    return suggestion.start[0] + len(lines), width if lines else suggestion.start[1] + width
