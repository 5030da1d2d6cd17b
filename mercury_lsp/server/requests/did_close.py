"""textDocument/didClose: the client has closed a document."""

from lsprotocol import types

from mercury_lsp.server.server import MercuryServer


def did_close(server: MercuryServer, params: types.DidCloseTextDocumentParams) -> None:
    """Tell the session."""
    server.session.document_closed(params.text_document.uri)
