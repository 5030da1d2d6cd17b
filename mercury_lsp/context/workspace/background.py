"""The one thread that finds and reads other files."""

import logging
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread

from mercury_lsp.context.workspace.pace import Pace

logger = logging.getLogger(__name__)

BackgroundJob = Callable[[], None]


class Background:
    """Does jobs in their order, and `step` again and again while none waits and there is more to do."""

    def __init__(self, step: Callable[[], bool], pace: Pace):
        self._step, self._pace = step, pace
        self._jobs: SimpleQueue[BackgroundJob | None] = SimpleQueue()
        self._thread: Thread | None = None

    @property
    def has_begun(self) -> bool:
        """Whether there was a job."""
        return self._thread is not None

    def put(self, job: BackgroundJob) -> None:
        """Have a job done; the thread starts with the first."""
        self._jobs.put(job)
        if self._thread is None:
            self._thread = Thread(target=self._run, name="mercury-workspace", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End after the jobs that wait, without beginning more; returns at once."""
        self._jobs.put(None)

    def _run(self) -> None:
        is_more = False
        while True:
            try:
                job = self._jobs.get_nowait() if is_more else self._jobs.get()
            except Empty:
                is_more = self._guarded(self._step)
                self._pace.breathe()
                continue
            if job is None:
                return
            self._guarded(job)
            is_more = True

    def _guarded(self, work: Callable[[], bool | None]) -> bool:
        try:
            return bool(work())
        except Exception:
            logger.exception("reading the workspace failed")
            return False
