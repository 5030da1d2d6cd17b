"""textDocument/inlineCompletion: ghost text at a cursor, and its denoising as partial results.

Each partial result is a list of one item and replaces the one before. The item's text is the committed beginning; its
field `mercury` holds the canvas as runs of committed slots, drafts and masks.
"""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import groupby, takewhile
from typing import Any

import attrs
from lsprotocol import types
from mercury_engine.api import PART_OF_A_CHARACTER, SlotView

from mercury_lsp.server.convert import extending_selected, from_line_start, to_lsp, to_range
from mercury_lsp.server.server import MercuryServer

PART_INTERVAL_SECONDS = 0.016
"""Shortest time between two partial results; screens show no more."""


@attrs.define
class InlineCompletionParams(types.InlineCompletionParams):
    """With partial results, which LSP 3.18 lacks here."""

    partial_result_token: types.ProgressToken | None = None


async def inline_completion(server: MercuryServer, params: InlineCompletionParams) -> dict[str, Any]:
    """One item while typing, several if the user asks; shows the denoising to clients that can."""
    uri, at, editor = params.text_document.uri, params.position, server.editor.capabilities
    automatic = params.context.trigger_kind != types.InlineCompletionTriggerKind.Invoked
    selected = params.context.selected_completion_info
    streams = editor.takes_denoising and not automatic and selected is None
    with ExitStack() as stack:
        stack.enter_context(server.editor.progress(params.work_done_token, "Completing", cancellable=True))
        on_step = None
        if streams and params.partial_result_token is not None:
            denoising = DenoiseProgress(server, params.partial_result_token, at)
            on_step = denoising.step
            stack.callback(denoising.end)
        found, snapshot = await server.suggester.suggest(uri, at, "inline", automatic, on_step)
    if selected is not None:
        if found and not (found := extending_selected(selected, found, snapshot)):
            server.session.completer.silences[uri] = "it does not begin like the entry selected in the list"
        if not found:
            server.session.statistics.observer.retract(uri)
    elif editor.is_copilot:
        found = [from_line_start(each, snapshot) for each in found]
    return to_lsp(found, editor.takes_confidence)


class DenoiseProgress:
    """Sends the newest canvas, at most once per interval; for the event loop's thread."""

    def __init__(self, server: MercuryServer, token: types.ProgressToken, at: types.Position):
        self._server, self._token = server, token
        self._range = to_range((at.line, at.character), (at.line, at.character))
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._newest: Sequence[SlotView] = ()
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0
        """The event loop's time at which the next partial result may be sent."""
        self._over = False

    def step(self, slots: tuple[SlotView, ...]) -> None:
        """Show this canvas, now or at the end of the interval."""
        self._newest = slots
        if self._timer is None:
            self._timer = self._loop.call_at(max(self._next, self._loop.time()), self._send)

    def end(self) -> None:
        """Send nothing more."""
        self._over = True

    def _send(self) -> None:
        self._timer = None
        if self._over or (self._task is not None and self._task.cancelling()):
            return
        self._next = self._loop.time() + PART_INTERVAL_SECONDS
        committed = takewhile(lambda slot: slot.state == "committed", self._newest)
        text = "".join(slot.text for slot in committed).partition(PART_OF_A_CHARACTER)[0]
        item = {"insertText": text, "range": self._range, "mercury": {"slots": runs(self._newest)}}
        self._server.notify(types.PROGRESS, {"token": self._token, "value": [item]})


def runs(slots: Sequence[SlotView]) -> list[dict[str, Any]]:
    """Runs of neighbouring slots with the same state, up to the end marker: state, text and number of slots."""
    shown = takewhile(lambda slot: slot.state != "end", slots)
    joined = ((state, list(same)) for state, same in groupby(shown, lambda slot: slot.state))
    return [{"state": state, "text": "".join(s.text for s in same), "count": len(same)} for state, same in joined]
