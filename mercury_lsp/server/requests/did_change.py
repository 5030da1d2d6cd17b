"""textDocument/didChange: edits of a document."""

from lsprotocol import types

from mercury_lsp.server.server import MercuryServer


def did_change(server: MercuryServer, params: types.DidChangeTextDocumentParams) -> None:
    """Tell the session."""
    document = params.text_document
    server.session.document_changed(document.uri, document.version, params.content_changes)
