"""The server's status, for clients that show it."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

StatusKind = Literal["Normal", "Error", "Warning", "Inactive"]

BUSY_AFTER_SECONDS = 0.1
"""A slower suggestion makes the status busy."""


@dataclass(frozen=True, slots=True)
class Status:
    """The parameters of `didChangeStatus`."""

    kind: StatusKind = "Normal"
    busy: bool = False
    message: str = ""
    """Never null, because clients search in it."""


LOADING = Status(busy=True, message="loading the model")


class StatusBoard:
    """Keeps the status and passes every new one to `show`; used on the event loop's thread only."""

    def __init__(self, show: Callable[[Status], None]):
        self._show = show
        self._condition = LOADING
        self._enabled = True
        self._slow = 0
        """Number of slow suggestions under way."""
        self._work = ""
        """Other work under way, such as a download."""
        self._shown: Status | None = None

    @property
    def current(self) -> Status:
        if self._condition.kind == "Normal" and not self._enabled:
            return Status("Inactive", message="switched off by mercury.enabled")
        if self._work and self._condition.kind == "Normal" and not self._condition.busy:
            return Status(busy=True, message=self._work)
        return replace(self._condition, busy=True) if self._slow else self._condition

    def change(self, condition: Status | None = None, enabled: bool | None = None, work: str | None = None) -> None:
        """Note a new condition of the model, that suggestions were switched on or off, or other work."""
        self._work = self._work if work is None else work
        self._condition = condition or self._condition
        self._enabled = self._enabled if enabled is None else enabled
        if self._shown != self.current:
            self._shown = self.current
            self._show(self.current)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Show the server as busy while the block runs, unless it ends soon."""
        counted = False

        def count() -> None:
            nonlocal counted
            counted = True
            self._slow += 1
            self.change()

        timer = asyncio.get_running_loop().call_later(BUSY_AFTER_SECONDS, count)
        try:
            yield
        finally:
            timer.cancel()
            if counted:
                self._slow -= 1
                self.change()
