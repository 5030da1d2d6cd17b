"""textDocument/didOpen: the client hands over a document's text."""

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from mercury_lsp.server.server import MercuryServer


def did_open(server: MercuryServer, params: types.DidOpenTextDocumentParams) -> None:
    """Tell the session."""
    if not isinstance(params.text_document.language_id, str):  # lsprotocol lets anything pass here
        raise JsonRpcInvalidParams(f"languageId is {params.text_document.language_id!r}; it must be a string")
    server.session.document_opened(params.text_document)
