"""The threads beside the event loop: one finds and reads other files at its own pace, one watches them for changes."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import perf_counter, sleep

import watchfiles

WORK_SECONDS = 0.001
REST_SECONDS = 0.004
"""Python makes a computing thread give way only after 5 ms, so background work rests on its own."""

MAX_WATCHED_FOLDERS = 16_384
"""Most folders watched: operating systems limit watches. Files are checked for changes when read anyway."""

QUIET_MS = 500
"""Changes are reported together after this long without another."""

MAX_DELAY_MS = 2000
"""Longest delay of a report."""

logger = logging.getLogger(__name__)

BackgroundJob = Callable[[], None]


class Background:
    """Runs jobs in order; while none waits, runs `step` until it returns False."""

    def __init__(self, step: Callable[[], bool]):
        self._step = step
        self._jobs: SimpleQueue[BackgroundJob | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._work_until = 0.0

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

    def rest_if_due(self) -> None:
        """Leave the interpreter to other threads if the working time is over.

        Jobs call it at least every half millisecond of work.
        """
        if perf_counter() >= self._work_until:
            sleep(REST_SECONDS)
            self._work_until = perf_counter() + WORK_SECONDS

    def _run(self) -> None:
        has_more = False
        while True:
            try:
                job = self._jobs.get_nowait() if has_more else self._jobs.get()
            except Empty:
                has_more = self._guarded(self._step)
                self.rest_if_due()
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


class Watcher:
    """Watches folders, not recursively, in its own thread; `report` gets the changed paths."""

    def __init__(self, report: Callable[[list[Path]], None]):
        self._report = report
        self._stop = Event()

    def watch(self, folders: Sequence[str]) -> None:
        """Watch these folders and no others."""
        self.close()
        if not folders or len(folders) > MAX_WATCHED_FOLDERS:
            return
        self._stop = Event()
        arguments = (tuple(folders), self._stop)
        Thread(target=self._run, args=arguments, name="mercury-watch", daemon=True).start()

    def close(self) -> None:
        self._stop.set()

    def _run(self, folders: Sequence[str], stop: Event) -> None:
        try:
            for changes in watchfiles.watch(
                *folders,
                watch_filter=None,
                debounce=MAX_DELAY_MS,
                step=QUIET_MS,
                stop_event=stop,
                recursive=False,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                if not stop.is_set():
                    self._report([Path(path) for _, path in changes])
        except (OSError, RuntimeError) as error:
            logger.warning("the workspace is not watched (%s); changes are seen when a file is read", error)
