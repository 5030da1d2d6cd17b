"""The command "Mercury: apply next edit": applies it and moves the cursor there, or to the most likely place."""

from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.server.progress import client_progress, new_token
from mercury_lsp.server.requests.applying import CHANGED_REASON, apply, go_to, refused
from mercury_lsp.server.server import MercuryServer

NEXT_EDIT_COMMAND = "mercury.nextEdit"

NEXT_EDIT_TITLE = "Mercury: apply next edit"


@attrs.define
class NextEdit:
    """The command's one argument; without a version the current one counts."""

    text_document: types.OptionalVersionedTextDocumentIdentifier


async def next_edit(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> dict[str, bool]:
    """Apply the next edit and put the cursor after it, or go to the most likely place of one."""
    argument = server.protocol.structure(arguments[0] if len(arguments) == 1 else None, NextEdit)
    uri, version, documents = argument.text_document.uri, argument.text_document.version, server.session.documents
    if version not in (None, documents.snapshot(uri).version):
        return refused(server, CHANGED_REASON)
    with client_progress(server, token or await new_token(server), NEXT_EDIT_TITLE, cancellable=True):
        found, snapshot = await server.suggester.next_edit(uri, "action")
    if version not in (None, documents.snapshot(uri).version) or not documents.is_current(snapshot):
        return refused(server, CHANGED_REASON)
    if not found and not snapshot.is_parsed:
        return refused(server, "the file is still being read; ask again")
    if not found:
        return await _go_to_place(server, uri)
    return await apply(server, snapshot, found[0], NEXT_EDIT_TITLE)


async def _go_to_place(server: MercuryServer, uri: str) -> dict[str, bool]:
    place = await server.suggester.next_place(uri)
    if place is None:
        return refused(server, "no next edit")
    start = types.Position(*place.position)
    if server.editor.capabilities.shows_documents:
        await go_to(server, place.snapshot.uri, start)
        return refused(server, "no next edit, but one is likely here")
    return refused(server, f"no next edit, but one is likely at line {start.line + 1} of {place.path}")
