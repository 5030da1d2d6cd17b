"""What other servers tell the client, which forwards it: LSP sends it to clients only.

The suggester leaves documents alone that it has no next edits for.
"""

from collections.abc import Sequence

import attrs
from lsprotocol import types

from mercury_lsp.server.server import MercuryServer

MAX_HIGHLIGHTS = 2_000
"""Highlights that are taken; of a name in more places nothing is kept."""


@attrs.define
class ForwardedDiagnostic:
    """A diagnostic, whose message and other fields are left unread."""

    range: types.Range
    severity: int
    """As in LSP: 1 for an error; others are left out."""


@attrs.define
class DidChangeDiagnosticsParams:
    """All errors of this version of a document, in place of those sent before."""

    text_document: types.VersionedTextDocumentIdentifier
    diagnostics: Sequence[ForwardedDiagnostic]


@attrs.define
class DidChangeHighlightsParams:
    """The answer to `textDocument/documentHighlight` at the cursor, of this version of a document.

    A client asks for it before the user changes the name: after the change its server no longer knows what belongs
    together.
    """

    text_document: types.VersionedTextDocumentIdentifier
    highlights: Sequence[types.DocumentHighlight]


def did_change_diagnostics(server: MercuryServer, params: DidChangeDiagnosticsParams) -> None:
    """mercury/didChangeDiagnostics: errors in a document."""
    errors = [each.range for each in params.diagnostics if each.severity == types.DiagnosticSeverity.Error]
    server.suggester.diagnostics_changed(params.text_document.uri, params.text_document.version, errors)


def did_change_highlights(server: MercuryServer, params: DidChangeHighlightsParams) -> None:
    """mercury/didChangeHighlights: where the name at the cursor stands."""
    found = [(each.range, each.kind == types.DocumentHighlightKind.Write) for each in params.highlights]
    if len(found) <= MAX_HIGHLIGHTS:
        server.suggester.name_highlighted(params.text_document.uri, params.text_document.version, found)
