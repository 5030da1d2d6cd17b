"""Watches for changed files, for clients that do not."""

import logging
from collections.abc import Callable, Sequence
from threading import Event, Thread

import watchfiles

logger = logging.getLogger(__name__)

MAX_WATCHED_FOLDERS = 16_384
"""Most folders watched: operating systems limit watches. Files are checked for changes when read anyway."""

QUIET_MS = 500
"""Changes are reported together after this long without another."""

MAX_DELAY_MS = 2000
"""Longest delay of a report."""


class Watcher:
    """Watches folders, not recursively, in its own thread; `report` gets the changed paths."""

    def __init__(self, report: Callable[[list[str]], None]):
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
                    self._report([path for _, path in changes])
        except (OSError, RuntimeError) as error:
            logger.warning("the workspace is not watched (%s); changes are seen when a file is read", error)
