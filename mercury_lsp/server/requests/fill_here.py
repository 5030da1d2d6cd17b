"""The command "Mercury: fill here": asks the model and has the client insert what it says."""

from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.server.progress import ClientProgress, new_token
from mercury_lsp.server.requests.applying import CHANGED, apply, refused
from mercury_lsp.server.session import MercuryServer

FILL = "mercury.fill"

TITLE = "Mercury: fill here"


@attrs.define
class FillHere:
    """The command's one argument."""

    text_document: types.VersionedTextDocumentIdentifier
    position: types.Position


async def fill_here(server: MercuryServer, token: types.ProgressToken | None, *arguments: Any) -> dict[str, bool]:
    """Insert a fill at a place of one version of a document, and put the cursor behind it."""
    place = server.protocol.structure(arguments[0] if len(arguments) == 1 else None, FillHere)
    uri = place.text_document.uri
    with ClientProgress(server, token or await new_token(server), TITLE, cancellable=True):
        found, snapshot = await server.suggest(uri, place.position, "action", automatic=False)
    if server.documents.snapshot(uri).version != place.text_document.version or not server.is_current(snapshot):
        return refused(server, CHANGED)
    if not found:
        return refused(server, "nothing to fill in here")
    return await apply(server, snapshot, found[0], TITLE)
