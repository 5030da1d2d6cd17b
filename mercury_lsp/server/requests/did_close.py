"""textDocument/didClose: a document is the client's no more."""

from lsprotocol import types

from mercury_lsp.server.session import MercuryServer


def did_close(server: MercuryServer, params: types.DidCloseTextDocumentParams) -> None:
    """Forget it."""
    server.completer.forget(params.text_document.uri)
    server.lookup_text.forget(params.text_document.uri)
    server.statistics.observer.closed(params.text_document.uri)
    server.other_files.forget(params.text_document.uri)
    server.documents.close(params.text_document.uri)
