"""Shows a client the denoising of its answer, as partial results.

Each partial result is a list of one item and replaces the one before. The item's text is the committed beginning; its
field `mercury` holds the canvas as runs of committed slots, drafts and masks.
"""

import asyncio
from collections.abc import Sequence
from itertools import groupby, takewhile
from types import TracebackType
from typing import Any, Self

from lsprotocol import types
from mercury_engine.api import PART_OF_A_CHARACTER, OnStep, SlotView
from pygls.lsp.server import LanguageServer

from mercury_lsp.server.convert import to_range

PART_INTERVAL_SECONDS = 0.016
"""Shortest time between two partial results; screens show no more."""


class DenoiseProgress:
    """Shows steps while its block runs; without a token `on_step` is None. For the event loop's thread."""

    def __init__(self, server: LanguageServer, token: types.ProgressToken | None, at: types.Position):
        self.on_step: OnStep | None = self._step if token is not None else None
        self._server, self._token = server, token
        self._range = to_range((at.line, at.character), (at.line, at.character))
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._newest: Sequence[SlotView] = ()
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0
        """The event loop's time at which the next partial result may be sent."""
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()

    def _step(self, slots: tuple[SlotView, ...]) -> None:
        """Show the newest canvas, now or at the end of the interval."""
        self._newest = slots
        if self._timer is None:
            self._timer = self._loop.call_at(max(self._next, self._loop.time()), self._send)

    def _send(self) -> None:
        self._timer = None
        if self._over or self._token is None or (self._task is not None and self._task.cancelling()):
            return
        self._next = self._loop.time() + PART_INTERVAL_SECONDS
        self._server.protocol.notify(types.PROGRESS, types.ProgressParams(self._token, [self._item()]))

    def _item(self) -> dict[str, Any]:
        committed = takewhile(lambda slot: slot.state == "committed", self._newest)
        text = "".join(slot.text for slot in committed).partition(PART_OF_A_CHARACTER)[0]
        return {"insertText": text, "range": self._range, "mercury": {"slots": runs(self._newest)}}


def runs(slots: Sequence[SlotView]) -> list[dict[str, Any]]:
    """Runs of neighbouring slots with the same state, up to the end marker: state, text and number of slots."""
    shown = takewhile(lambda slot: slot.state != "end", slots)
    joined = ((state, list(same)) for state, same in groupby(shown, lambda slot: slot.state))
    return [{"state": state, "text": "".join(s.text for s in same), "count": len(same)} for state, same in joined]
