"""Other servers' diagnostics and highlights, which LSP sends to clients only; ours forward them."""

from collections.abc import Sequence

import attrs
from lsprotocol import types

from mercury_lsp.server.server import MercuryServer

MAX_HIGHLIGHTS = 2_000
"""Longer lists are ignored."""


@attrs.define
class ForwardedDiagnostic:
    """A diagnostic; only errors count."""

    range: types.Range
    severity: int


@attrs.define
class DidChangeDiagnosticsParams:
    """All errors of this version of a document; replaces those sent before."""

    text_document: types.VersionedTextDocumentIdentifier
    diagnostics: Sequence[ForwardedDiagnostic]


@attrs.define
class DidChangeHighlightsParams:
    """The answer to `textDocument/documentHighlight` at the cursor, asked before the user changes the name."""

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
