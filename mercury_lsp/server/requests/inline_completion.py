"""textDocument/inlineCompletion: ghost text at a cursor."""

from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.server.convert import beyond, from_line_start, to_lsp
from mercury_lsp.server.denoise_progress import Denoising
from mercury_lsp.server.progress import ClientProgress
from mercury_lsp.server.session import MercuryServer


@attrs.define
class InlineCompletionParams(types.InlineCompletionParams):
    """LSP 3.18 has no partial results for this request; our own clients may ask for them."""

    partial_result_token: types.ProgressToken | None = None


async def inline_completion(server: MercuryServer, params: InlineCompletionParams) -> dict[str, Any]:
    """One item while typing, several to cycle through when the user asks; their denoising to who declared it."""
    automatic = params.context.trigger_kind != types.InlineCompletionTriggerKind.Invoked
    selected = params.context.selected_completion_info
    streams = server.editor.takes_denoising and not automatic and selected is None
    token = params.partial_result_token if streams else None
    with (
        ClientProgress(server, params.work_done_token, "Completing", cancellable=True),
        Denoising(server, token, params.position) as denoising,
    ):
        uri, at, on_step = params.text_document.uri, params.position, denoising.on_step
        found, snapshot = await server.suggest(uri, at, "inline", automatic, on_step)
    if selected is not None:
        found = beyond(selected, found, snapshot)
        if not found:
            server.statistics.observer.retract(params.text_document.uri)
    elif server.editor.is_copilot:
        found = from_line_start(found, snapshot)
    return to_lsp(found, server.editor.takes_confidence)
