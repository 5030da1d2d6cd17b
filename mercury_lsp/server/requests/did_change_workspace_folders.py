"""workspace/didChangeWorkspaceFolders: folders were added to the workspace or removed from it."""

from lsprotocol import types

from mercury_lsp.server.server import MercuryServer


def did_change_workspace_folders(server: MercuryServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Tell the session."""
    added, removed = ([folder.uri for folder in folders] for folders in (params.event.added, params.event.removed))
    server.session.folders_changed(added, removed)
