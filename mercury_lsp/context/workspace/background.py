"""The background thread that finds and reads other files, and its pace."""

import logging
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from time import perf_counter, sleep

WORK_SECONDS = 0.001
REST_SECONDS = 0.004
"""Python makes a computing thread give way only after 5 ms, so background work rests on its own."""

logger = logging.getLogger(__name__)

BackgroundJob = Callable[[], None]


class Pace:
    """Rests for `REST_SECONDS` after every `WORK_SECONDS`, and so leaves the interpreter to the event loop's thread."""

    def __init__(self) -> None:
        self._work_until = 0.0

    def rest_if_due(self) -> None:
        """Rest if the working time is over; call it at least every half millisecond of work."""
        if perf_counter() >= self._work_until:
            sleep(REST_SECONDS)
            self._work_until = perf_counter() + WORK_SECONDS


class Background:
    """Runs jobs in order; while none waits, runs `step` until it returns False."""

    def __init__(self, step: Callable[[], bool], pace: Pace):
        self._step, self._pace = step, pace
        self._jobs: SimpleQueue[BackgroundJob | None] = SimpleQueue()
        self._thread: Thread | None = None

    @property
    def has_begun(self) -> bool:
        """Whether a job was ever put."""
        return self._thread is not None

    def put(self, job: BackgroundJob) -> None:
        """Queue a job; the first one starts the thread."""
        self._jobs.put(job)
        if self._thread is None:
            self._thread = Thread(target=self._run, name="mercury-workspace", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop after the queued jobs; returns at once."""
        self._jobs.put(None)

    def _run(self) -> None:
        has_more = False
        while True:
            try:
                job = self._jobs.get_nowait() if has_more else self._jobs.get()
            except Empty:
                has_more = self._guarded(self._step)
                self._pace.rest_if_due()
                continue
            if job is None:
                return
            self._guarded(job)
            has_more = True

    def _guarded(self, work: Callable[[], bool | None]) -> bool:
        try:
            return bool(work())
        except Exception:
            logger.exception("reading the workspace failed")
            return False
