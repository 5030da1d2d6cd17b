"""textDocument/didOpen: a document's text is ours from now on."""

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from mercury_lsp.server.session import MercuryServer


def did_open(server: MercuryServer, params: types.DidOpenTextDocumentParams) -> None:
    """Take it over; opened anew it is replaced."""
    if not isinstance(params.text_document.language_id, str):  # lsprotocol lets anything pass here
        raise JsonRpcInvalidParams(f"languageId is {params.text_document.language_id!r}; it must be a string")
    server.completer.forget(params.text_document.uri)
    server.lookup_text.forget(params.text_document.uri)
    server.statistics.observer.closed(params.text_document.uri)
    server.documents.open(params.text_document)
    server.settle_soon(params.text_document.uri)
