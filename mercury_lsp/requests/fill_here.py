"""The command "Mercury: fill here": asks the model and has the client insert what it says."""

import logging
from typing import Any

import attrs
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from mercury_lsp.documents import Snapshot
from mercury_lsp.progress import Work, new_token
from mercury_lsp.server import MercuryServer
from mercury_lsp.suggestions import Position, Suggestion

logger = logging.getLogger(__name__)

FILL = "mercury.fill"

TITLE = "Mercury: fill here"


@attrs.define
class FillHere:
    """The command's one argument."""

    text_document: types.VersionedTextDocumentIdentifier
    position: types.Position


async def fill_here(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> dict[str, bool]:
    """Insert a fill at a place of one version of a document, and put the cursor behind it."""
    place = server.protocol.structure(arguments[0] if len(arguments) == 1 else None, FillHere)
    uri = place.text_document.uri
    with Work(server, token or await new_token(server), TITLE, cancellable=True):
        found, snapshot = await server.suggest(uri, place.position, "action", triggered=False)
    if server.documents.snapshot(uri).version != place.text_document.version:
        return _refused(server, "the document has changed; ask again")
    if not found:
        return _refused(server, "nothing to fill in here")
    applied = await _apply(server, uri, snapshot, found[0])
    if applied and server.editor.shows_documents:
        await _go_behind(server, uri, found[0])
    return {"applied": applied}


async def _apply(server: MercuryServer, uri: str, snapshot: Snapshot, suggestion: Suggestion) -> bool:
    span = types.Range(types.Position(*suggestion.start), types.Position(*suggestion.end))
    edit = types.TextEdit(span, suggestion.text)
    if server.editor.takes_versioned_edits:
        document = types.OptionalVersionedTextDocumentIdentifier(uri, snapshot.version)
        changes = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, [edit])])
    else:
        changes = types.WorkspaceEdit(changes={uri: [edit]})
    try:
        answer = await server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(changes, TITLE))
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
    width = len(last.encode("utf-16-le", "surrogatepass")) // 2
    return suggestion.start[0] + len(lines), width if lines else suggestion.start[1] + width


def _refused(server: MercuryServer, reason: str) -> dict[str, bool]:
    server.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"Mercury: {reason}"))
    return {"applied": False}
