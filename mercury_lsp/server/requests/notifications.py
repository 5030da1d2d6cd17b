"""LSP's notifications: each tells the session, or the configuration, what has happened."""

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from mercury_lsp.documents.uris import path_of
from mercury_lsp.server.server import MercuryServer


async def initialized(server: MercuryServer, params: types.InitializedParams) -> None:
    """The client listens now: register with it, ask for its settings and load the model."""
    await server.start()


async def did_change_configuration(server: MercuryServer, params: types.DidChangeConfigurationParams) -> None:
    """The new settings are in the message, or to be asked for."""
    await server.configuration.update(params.settings)


def did_open(server: MercuryServer, params: types.DidOpenTextDocumentParams) -> None:
    if not isinstance(params.text_document.language_id, str):  # lsprotocol lets anything pass here
        raise JsonRpcInvalidParams(f"languageId is {params.text_document.language_id!r}; it must be a string")
    server.session.document_opened(params.text_document)


def did_change(server: MercuryServer, params: types.DidChangeTextDocumentParams) -> None:
    document = params.text_document
    server.session.document_changed(document.uri, document.version, params.content_changes)


def did_close(server: MercuryServer, params: types.DidCloseTextDocumentParams) -> None:
    server.session.document_closed(params.text_document.uri)


def did_save(server: MercuryServer, params: types.DidSaveTextDocumentParams) -> None:
    server.session.document_saved(params.text_document.uri)


def did_change_watched_files(server: MercuryServer, params: types.DidChangeWatchedFilesParams) -> None:
    paths = [path_of(change.uri) for change in params.changes]
    server.session.files_changed([path for path in paths if path is not None])


def did_change_workspace_folders(server: MercuryServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    added, removed = ([folder.uri for folder in folders] for folders in (params.event.added, params.event.removed))
    server.session.folders_changed(added, removed)
