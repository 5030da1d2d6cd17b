"""The command behind "Rename all ... remaining": makes the last renaming everywhere, in one edit of the workspace."""

from typing import Any

from lsprotocol import types

from mercury_lsp.completion.next_edits import Renaming
from mercury_lsp.completion.suggestions import RenamingProgress
from mercury_lsp.server.requests.applying import CHANGED_REASON, make_edits, refused, text_edit
from mercury_lsp.server.requests.next_edit import NextEdit
from mercury_lsp.server.server import MercuryServer

APPLY_ALL_COMMAND = "mercury.applyAllEdits"


def apply_all_title(renaming: Renaming | RenamingProgress) -> str:
    """The title of the command and of its code action."""
    return f"Rename all {renaming.remaining} remaining {renaming.old} to {renaming.new}"


async def apply_all_edits(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> dict[str, Any]:
    """Rename all places that are left; one that looks like a secret stays, and the user is told."""
    argument = server.protocol.structure(arguments[0] if len(arguments) == 1 else None, NextEdit)
    uri, version, documents = argument.text_document.uri, argument.text_document.version, server.session.documents
    if version not in (None, documents.snapshot(uri).version):
        return refused(server, CHANGED_REASON)
    found = await server.suggester.rename_all(uri)
    if found is None:
        return refused(server, "no renaming to finish")
    edits = [text_edit(found.snapshot, site) for site in found.sites]
    applied = await make_edits(server, found.snapshot, edits, "Mercury: rename all")
    if found.kept and applied:
        message = f"Mercury: {found.kept} places stay, because their lines look like secrets"
        server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))
    return {"applied": applied, "edits": len(edits), "documents": 1, "remaining": found.kept}
