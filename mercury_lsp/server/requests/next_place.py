"""mercury/nextPlace: where the user probably edits next, for editors that can take them there."""

from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.completion.next_edits.next_place import first_position
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.server.server import MercuryServer

NEXT_PLACE_METHOD = "mercury/nextPlace"


@attrs.define
class NextPlaceParams:
    """The document at hand, in the version that the editor has, and the cursor."""

    text_document: types.OptionalVersionedTextDocumentIdentifier
    position: types.Position


async def next_place(server: MercuryServer, params: NextPlaceParams) -> dict[str, Any] | None:
    """A line of an open document, or None if no place is likely, or the document has changed meanwhile."""
    asked = params.text_document
    if asked.version not in (None, server.session.documents.snapshot(asked.uri).version):
        return None
    found = await server.suggester.next_place(asked.uri, params.position)
    return None if found is None else _answer(found)


def _answer(place: Place) -> dict[str, Any]:
    line, character = first_position(place)
    return {
        "textDocument": {"uri": place.snapshot.uri, "version": place.snapshot.version},
        "position": {"line": line, "character": character},
        "chance": round(place.probability, 3),
    }
