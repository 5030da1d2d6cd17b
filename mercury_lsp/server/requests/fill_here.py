"""The command "Mercury: fill here": has the client insert the model's fill."""

from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.server.progress import client_progress, new_token
from mercury_lsp.server.requests.applying import CHANGED_REASON, apply, refused
from mercury_lsp.server.server import MercuryServer

FILL_COMMAND = "mercury.fill"

FILL_TITLE = "Mercury: fill here"


@attrs.define
class FillHere:
    """The command's one argument."""

    text_document: types.VersionedTextDocumentIdentifier
    position: types.Position


async def fill_here(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> dict[str, bool]:
    """Insert a fill at a position of one version of a document, and put the cursor after it."""
    argument = server.protocol.structure(arguments[0] if len(arguments) == 1 else None, FillHere)
    uri, version, documents = argument.text_document.uri, argument.text_document.version, server.session.documents
    with client_progress(server, token or await new_token(server), FILL_TITLE, cancellable=True):
        found, snapshot = await server.suggester.suggest(uri, argument.position, "action", automatic=False)
    if documents.snapshot(uri).version != version or not documents.is_current(snapshot):
        return refused(server, CHANGED_REASON)
    if not found:
        return refused(server, "nothing to fill in here")
    return await apply(server, snapshot, found[0], FILL_TITLE)
