"""textDocument/inlineCompletion: ghost text at a cursor."""

from typing import Any

from lsprotocol import types

from mercury_lsp.convert import beyond, from_line_start, to_lsp
from mercury_lsp.progress import Work
from mercury_lsp.server import MercuryServer


async def inline_completion(server: MercuryServer, params: types.InlineCompletionParams) -> dict[str, Any]:
    """One item while typing, several to cycle through when the user asks."""
    triggered = params.context.trigger_kind != types.InlineCompletionTriggerKind.Invoked
    with Work(server, params.work_done_token, "Completing", cancellable=True):
        found, snapshot = await server.suggest(params.text_document.uri, params.position, triggered)
    selected = params.context.selected_completion_info
    if selected is not None:
        fitting = beyond(selected, found, snapshot)
        if not fitting:
            server.statistics.observer.hidden(params.text_document.uri)
        return to_lsp(fitting)
    return to_lsp(from_line_start(found, snapshot) if server.editor.is_copilot else found)
