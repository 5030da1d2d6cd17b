"""Has the installed models measured while no editor asks for anything and other programs rest."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL
from contextlib import suppress

from mercury_lsp.debounce import Debounced
from mercury_lsp.engine_host.engines import Engines

QUIET_SECONDS = 60.0
"""Without a request before a model is measured; the load average is about this old, too."""

BUSY_SHARE = 0.5
"""Running programs per processor, in the minute before, from which on the machine counts as busy."""

COMMAND = [sys.executable, "-P", "-m", "mercury_lsp.installed_models.measuring", "--missing"]
"""Measures one model without an idle measurement and keeps it; ends with an error if there is none."""


def is_busy() -> bool:
    """Whether other programs use the processors; False where the system does not say."""
    try:
        return os.getloadavg()[0] > BUSY_SHARE * (os.cpu_count() or 1)
    except (AttributeError, OSError):  # Windows has no such figure
        return False


class IdleMeasurement:
    """Measures one model after another in a process of its own, which a request ends; from the event loop's thread."""

    def __init__(self, engines: Engines):
        self._due = Debounced(self._begin)
        self._running: asyncio.Task[None] | None = None
        self._engines = engines
        engines.on_request = self.postpone

    def postpone(self) -> None:
        """End the measurement under way, and try again after a quiet minute."""
        if self._running is not None:
            self._running.cancel()
        self._due.postpone(QUIET_SECONDS)

    def _begin(self) -> None:
        if is_busy():
            self._due.postpone(QUIET_SECONDS)
        else:
            self._running = asyncio.ensure_future(self._measure())

    async def _measure(self) -> None:
        process = await asyncio.create_subprocess_exec(*COMMAND, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
        try:
            has_measured = await process.wait() == 0
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.kill()
            raise
        if has_measured:
            self._due.postpone(QUIET_SECONDS)
        else:
            self._engines.on_request = lambda: None
