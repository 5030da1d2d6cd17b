"""textDocument/inlineCompletion: ghost text at a cursor."""

from typing import Any

import attrs
from lsprotocol import types

from mercury_lsp.server.convert import extending_selected, from_line_start, to_lsp
from mercury_lsp.server.denoise_progress import DenoiseProgress
from mercury_lsp.server.progress import client_progress
from mercury_lsp.server.server import MercuryServer


@attrs.define
class InlineCompletionParams(types.InlineCompletionParams):
    """With partial results, which LSP 3.18 lacks here."""

    partial_result_token: types.ProgressToken | None = None


async def inline_completion(server: MercuryServer, params: InlineCompletionParams) -> dict[str, Any]:
    """One item while typing, several if the user asks; shows the denoising to clients that can."""
    uri, editor = params.text_document.uri, server.editor.capabilities
    automatic = params.context.trigger_kind != types.InlineCompletionTriggerKind.Invoked
    selected = params.context.selected_completion_info
    streams = editor.takes_denoising and not automatic and selected is None
    token = params.partial_result_token if streams else None
    with (
        client_progress(server, params.work_done_token, "Completing", cancellable=True),
        DenoiseProgress(server, token, params.position) as denoising,
    ):
        at, on_step = params.position, denoising.on_step
        found, snapshot = await server.suggester.suggest(uri, at, "inline", automatic, on_step)
    if selected is not None:
        if found and not (found := extending_selected(selected, found, snapshot)):
            server.session.completer.silences[uri] = "it does not begin like the entry selected in the list"
        if not found:
            server.session.statistics.observer.retract(uri)
    elif editor.is_copilot:
        found = [from_line_start(each, snapshot) for each in found]
    return to_lsp(found, editor.takes_confidence)
