"""textDocument/didChange: edits of a document."""

import logging
from collections.abc import Sequence

from lsprotocol import types

from mercury_lsp.documents.document import ContentChange, Snapshot
from mercury_lsp.server.session import MercuryServer
from mercury_lsp.statistics import edit_between

logger = logging.getLogger(__name__)


def did_change(server: MercuryServer, params: types.DidChangeTextDocumentParams) -> None:
    """Apply them in the order they came in, whatever version they name: the client has applied them too."""
    uri, version = params.text_document.uri, params.text_document.version
    snapshot = server.documents.snapshot(uri)
    if version < snapshot.version:
        logger.warning("%s goes from version %d back to %d", uri, snapshot.version, version)
    changes = _whole(params.content_changes, snapshot)
    edits = server.documents.change(uri, version, changes)
    server.completer.edited(uri, edits)
    as_one = [edit_between(snapshot, server.documents.snapshot(uri))] if edits is None else edits
    server.completer.next_edits.edited(uri, as_one)
    if server.statistics.observer.watches(uri):
        server.statistics.observer.edited(uri, as_one)
    server.other_files.edited(uri, edits)
    server.settle_soon(uri)


def _whole(changes: Sequence[ContentChange], snapshot: Snapshot) -> Sequence[ContentChange]:
    """The changes, a single one whose range covers the whole document as what it is: only differences count then."""
    if len(changes) == 1 and isinstance(changes[0], types.TextDocumentContentChangePartial):
        start, end = changes[0].range.start, changes[0].range.end
        if start == types.Position(0, 0) and end.line > snapshot.position_at(snapshot.length)[0]:
            return [types.TextDocumentContentChangeWholeDocument(changes[0].text)]
    return changes
