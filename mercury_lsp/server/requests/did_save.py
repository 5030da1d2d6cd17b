"""textDocument/didSave: a document was saved."""

from lsprotocol import types

from mercury_lsp.server.server import MercuryServer


def did_save(server: MercuryServer, params: types.DidSaveTextDocumentParams) -> None:
    """Tell the session."""
    server.session.document_saved(params.text_document.uri)
