"""How the server is, as it tells clients that show it."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

StatusKind = Literal["Normal", "Error", "Warning", "Inactive"]

BUSY_AFTER_SECONDS = 0.1
"""Seconds that a suggestion may take before it shows as work."""


@dataclass(frozen=True, slots=True)
class Status:
    """What `didChangeStatus` carries."""

    kind: StatusKind = "Normal"
    busy: bool = False
    message: str = ""

    def to_lsp(self) -> dict[str, Any]:
        """The notification's parameters; the message is never null, for clients search in it."""
        return {"kind": self.kind, "busy": self.busy, "message": self.message}

    def to_older(self) -> dict[str, Any]:
        """The same for `statusNotification`, which knows no inactive server."""
        status = "InProgress" if self.busy else "Normal" if self.kind == "Inactive" else self.kind
        return {"status": status, "message": self.message}


LOADING = Status(busy=True, message="loading the model")


class StatusBoard:
    """Keeps the status and hands every new one to `show`; to be used from the event loop's thread."""

    def __init__(self, show: Callable[[Status], None]):
        self._show = show
        self._condition = LOADING
        self._enabled = True
        self._waiting = 0
        """Suggestions that take long."""
        self._shown: Status | None = None

    @property
    def current(self) -> Status:
        """The status as it is now."""
        if self._condition.kind == "Normal" and not self._enabled:
            return Status("Inactive", message="switched off by mercury.enabled")
        return replace(self._condition, busy=True) if self._waiting else self._condition

    def change(self, condition: Status | None = None, enabled: bool | None = None) -> None:
        """The model's condition is another, or suggestions were switched on or off."""
        self._condition = condition or self._condition
        self._enabled = self._enabled if enabled is None else enabled
        if self._shown != self.current:
            self._shown = self.current
            self._show(self.current)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Show as work what goes on in the block, unless it is over at once."""
        counted = False

        def count() -> None:
            nonlocal counted
            counted = True
            self._waiting += 1
            self.change()

        timer = asyncio.get_running_loop().call_later(BUSY_AFTER_SECONDS, count)
        try:
            yield
        finally:
            timer.cancel()
            if counted:
                self._waiting -= 1
                self.change()
