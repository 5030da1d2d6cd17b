"""workspace/didChangeWatchedFiles: the client watches the files of the workspace."""

from lsprotocol import types

from mercury_lsp.documents.uris import path_of
from mercury_lsp.server.server import MercuryServer


def did_change_watched_files(server: MercuryServer, params: types.DidChangeWatchedFilesParams) -> None:
    """Tell the session which files were made, changed or deleted."""
    paths = [path_of(change.uri) for change in params.changes]
    server.session.files_changed([path for path in paths if path is not None])
