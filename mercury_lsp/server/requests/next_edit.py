"""The command "Mercury: apply next edit": makes the last change in one more place and goes there."""

from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.server.progress import ClientProgress, new_token
from mercury_lsp.server.requests.applying import CHANGED_REASON, apply, refused
from mercury_lsp.server.server import MercuryServer

NEXT_EDIT_COMMAND = "mercury.nextEdit"

NEXT_EDIT_TITLE = "Mercury: apply next edit"


@attrs.define
class NextEdit:
    """The command's one argument; without a version it applies to the document as it is now."""

    text_document: types.OptionalVersionedTextDocumentIdentifier


async def next_edit(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> dict[str, bool]:
    """Make the last change in the next place where the model agrees, and put the cursor behind it."""
    argument = server.protocol.structure(arguments[0] if len(arguments) == 1 else None, NextEdit)
    uri, version, documents = argument.text_document.uri, argument.text_document.version, server.session.documents
    if version not in (None, documents.snapshot(uri).version):
        return refused(server, CHANGED_REASON)
    with ClientProgress(server, token or await new_token(server), NEXT_EDIT_TITLE, cancellable=True):
        found, snapshot = await server.suggester.next_edit(uri, "action")
    if version not in (None, documents.snapshot(uri).version) or not await server.suggester.are_current([snapshot]):
        return refused(server, CHANGED_REASON)
    if not found:
        return refused(server, "no next edit" if snapshot.is_parsed else "the file is still being read; ask again")
    return await apply(server, snapshot, found[0], NEXT_EDIT_TITLE)
