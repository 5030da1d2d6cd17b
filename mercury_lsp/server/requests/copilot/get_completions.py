"""getCompletions and getCompletionsCycling, the older form of inline completion."""

from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.server.convert import from_line_start, to_position, to_range
from mercury_lsp.server.server import MercuryServer


@attrs.define
class Doc:
    """A document and a position; the version is sent back unchanged."""

    uri: str
    position: types.Position
    version: int | None = None


@attrs.define
class GetCompletionsParams:
    doc: Doc


async def get_completions(server: MercuryServer, params: GetCompletionsParams) -> dict[str, Any]:
    """Ghost text while typing."""
    return await _completions(server, params.doc, automatic=True)


async def get_completions_cycling(server: MercuryServer, params: GetCompletionsParams) -> dict[str, Any]:
    """All suggestions, because the user asked."""
    return await _completions(server, params.doc, automatic=False)


async def _completions(server: MercuryServer, doc: Doc, automatic: bool) -> dict[str, Any]:
    found, snapshot = await server.suggester.suggest(doc.uri, doc.position, "inline", automatic)
    whole_lines = [(each, from_line_start(each, snapshot)) for each in found]
    return {
        "completions": [
            {
                "uuid": each.id,
                "text": whole.text,
                "displayText": each.text,
                "range": to_range(whole.start, whole.end),
                "position": to_position(each.start),
            }
            | ({} if doc.version is None else {"docVersion": doc.version})
            for each, whole in whole_lines
        ]
    }
