"""mercury/didChangeHighlights: where the name at the cursor stands, as another server highlights it for the client.

A client asks that server before the user changes the name: after the change it no longer knows what belongs together.
"""

from collections.abc import Sequence

import attrs
from lsprotocol import types

from mercury_lsp.server.server import MercuryServer

DID_CHANGE_HIGHLIGHTS_METHOD = "mercury/didChangeHighlights"

MAX_HIGHLIGHTS = 2_000
"""Highlights that are taken; of a name in more places nothing is kept."""


@attrs.define
class DidChangeHighlightsParams:
    """The answer to `textDocument/documentHighlight` at the cursor, of this version of a document."""

    text_document: types.VersionedTextDocumentIdentifier
    highlights: Sequence[types.DocumentHighlight]


def did_change_highlights(server: MercuryServer, params: DidChangeHighlightsParams) -> None:
    """Tell the suggester, which leaves documents alone that it has no next edits for."""
    found = [(each.range, each.kind == types.DocumentHighlightKind.Write) for each in params.highlights]
    if len(found) <= MAX_HIGHLIGHTS:
        server.suggester.name_highlighted(params.text_document.uri, params.text_document.version, found)
