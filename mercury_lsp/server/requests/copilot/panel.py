"""textDocument/copilotPanelCompletion and the older getPanelCompletions: every suggestion, in a separate window."""

from typing import Any
from uuid import uuid4

import attrs
from lsprotocol import types

from mercury_lsp.server.convert import from_line_start, to_lsp, to_range
from mercury_lsp.server.progress import ClientProgress, send_parts
from mercury_lsp.server.requests.copilot.get_completions import Doc
from mercury_lsp.server.server import MercuryServer


@attrs.define
class PanelCompletionParams:
    """Parameters of the newer request."""

    text_document: types.TextDocumentIdentifier
    position: types.Position
    partial_result_token: types.ProgressToken | None = None
    work_done_token: types.ProgressToken | None = None


@attrs.define
class GetPanelCompletionsParams:
    """Parameters of the older request."""

    doc: Doc
    panel_id: str


async def panel_completion(server: MercuryServer, params: PanelCompletionParams) -> dict[str, Any]:
    """Items as in inline completion, or as partial results one by one if the client asks for them."""
    with ClientProgress(server, params.work_done_token, "Completing", cancellable=True):
        uri = params.text_document.uri
        found, snapshot = await server.suggester.suggest(uri, params.position, "panel", automatic=False)
    result = to_lsp(from_line_start(found, snapshot))
    if params.partial_result_token is None:
        return result
    send_parts(server, params.partial_result_token, ({"items": [item]} for item in result["items"]))
    return to_lsp([])


async def get_panel_completions(server: MercuryServer, params: GetPanelCompletionsParams) -> dict[str, Any]:
    """Solutions as notifications, and their number. They insert at the cursor, because one client ignores ranges."""
    found, snapshot = await server.suggester.suggest(params.doc.uri, params.doc.position, "panel", automatic=False)
    for each, whole in zip(found, from_line_start(found, snapshot), strict=True):
        solution = {
            "panelId": params.panel_id,
            "solutionId": uuid4().hex,
            "completionText": each.text,
            "displayText": whole.text,
            "range": to_range(each.start, each.end),
            "score": round(each.confidence, 4),
        }
        server.protocol.notify("PanelSolution", solution)
    server.protocol.notify("PanelSolutionsDone", {"panelId": params.panel_id, "status": "OK"})
    return {"solutionCountTarget": len(found)}
