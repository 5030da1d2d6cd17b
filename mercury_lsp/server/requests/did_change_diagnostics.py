"""mercury/didChangeDiagnostics: errors of other servers, which the client forwards.

LSP sends diagnostics to clients only. Messages and all other fields of theirs are left unread.
"""

from collections.abc import Sequence

import attrs
from lsprotocol import types

from mercury_lsp.server.server import MercuryServer

DID_CHANGE_DIAGNOSTICS_METHOD = "mercury/didChangeDiagnostics"


@attrs.define
class ForwardedDiagnostic:
    """A diagnostic, without its message."""

    range: types.Range
    severity: int
    """As in LSP: 1 for an error; others are left out."""


@attrs.define
class DidChangeDiagnosticsParams:
    """All errors of this version of a document, in place of those sent before."""

    text_document: types.VersionedTextDocumentIdentifier
    diagnostics: Sequence[ForwardedDiagnostic]


def did_change_diagnostics(server: MercuryServer, params: DidChangeDiagnosticsParams) -> None:
    """Tell the suggester, which leaves documents alone that it has no next edits for."""
    errors = [each.range for each in params.diagnostics if each.severity == types.DiagnosticSeverity.Error]
    server.suggester.diagnostics_changed(params.text_document.uri, params.text_document.version, errors)
