"""workspace/didChangeWorkspaceFolders."""

from lsprotocol import types

from mercury_lsp.server.session import MercuryServer


def did_change_workspace_folders(server: MercuryServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Paths told to the model are relative to these folders."""
    event = params.event
    server.change_folders([folder.uri for folder in event.added], [folder.uri for folder in event.removed])
