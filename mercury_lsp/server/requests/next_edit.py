"""The command "Mercury: apply next edit": makes the last change in one more place and goes there."""

from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.server.progress import ClientProgress, new_token
from mercury_lsp.server.requests.applying import CHANGED, apply, refused
from mercury_lsp.server.session import MercuryServer

NEXT_EDIT = "mercury.nextEdit"

TITLE = "Mercury: apply next edit"


@attrs.define
class NextEdit:
    """The command's one argument; without a version it is about the document as it is."""

    text_document: types.OptionalVersionedTextDocumentIdentifier


async def next_edit(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> dict[str, bool]:
    """Make the last change in the next place where the model agrees, and put the cursor behind it."""
    argument = server.protocol.structure(arguments[0] if len(arguments) == 1 else None, NextEdit)
    uri, version = argument.text_document.uri, argument.text_document.version
    if version not in (None, server.documents.snapshot(uri).version):
        return refused(server, CHANGED)
    with ClientProgress(server, token or await new_token(server), TITLE, cancellable=True):
        found, snapshot = await server.next_edit(uri, "action")
    if version not in (None, server.documents.snapshot(uri).version) or not server.is_current(snapshot):
        return refused(server, CHANGED)
    if not found:
        return refused(server, "no next edit" if snapshot.is_parsed else "the file is still being read; ask again")
    return await apply(server, snapshot, found[0], TITLE)
