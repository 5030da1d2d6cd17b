"""Other servers' diagnostics and highlights, which LSP sends to clients only; ours forward them."""

from collections.abc import Sequence

import attrs
from lsprotocol import types

from mercury_lsp.documents.document import Snapshot
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
    if (snapshot := _reported(server, params.text_document)) is not None:
        errors = (each.range for each in params.diagnostics if each.severity == types.DiagnosticSeverity.Error)
        server.session.diagnostics.report(snapshot, (_offsets(snapshot, each)[0] for each in errors))


def did_change_highlights(server: MercuryServer, params: DidChangeHighlightsParams) -> None:
    """mercury/didChangeHighlights: where the name at the cursor stands; True for places where it is written."""
    snapshot = _reported(server, params.text_document)
    if snapshot is not None and len(params.highlights) <= MAX_HIGHLIGHTS:
        is_written = types.DocumentHighlightKind.Write
        places = [(*_offsets(snapshot, each.range), each.kind == is_written) for each in params.highlights]
        server.session.completer.next_edits.highlighted(snapshot, places)


def _reported(server: MercuryServer, document: types.VersionedTextDocumentIdentifier) -> Snapshot | None:
    """The document of a report; None if the report is out of date or unwanted."""
    if document.uri not in server.session.documents:
        return None
    snapshot = server.session.documents.snapshot(document.uri)
    is_wanted = document.version == snapshot.version and server.suggester.allows_next_edits(snapshot)
    return snapshot if is_wanted else None


def _offsets(snapshot: Snapshot, span: types.Range) -> tuple[int, int]:
    start, end = (snapshot.offset_at(each.line, each.character) for each in (span.start, span.end))
    return start, end
