"""getCompletions and getCompletionsCycling, the older form of inline completion."""

from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.server.convert import from_line_start, to_position, to_range
from mercury_lsp.server.session import MercuryServer


@attrs.define
class Doc:
    """A place; the version counts what the client likes and is sent back as it came."""

    uri: str
    position: types.Position
    version: int | None = None


@attrs.define
class GetCompletionsParams:
    """What both carry."""

    doc: Doc


async def get_completions(server: MercuryServer, params: GetCompletionsParams) -> dict[str, Any]:
    """Ghost text while typing."""
    return await _completions(server, params.doc, automatic=True)


async def get_completions_cycling(server: MercuryServer, params: GetCompletionsParams) -> dict[str, Any]:
    """All there is at the cursor, for the user asks."""
    return await _completions(server, params.doc, automatic=False)


async def _completions(server: MercuryServer, doc: Doc, automatic: bool) -> dict[str, Any]:
    found, snapshot = await server.suggest(doc.uri, doc.position, "inline", automatic)
    whole_lines = from_line_start(found, snapshot)
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
            for each, whole in zip(found, whole_lines, strict=True)
        ]
    }
