"""Changes of files, for clients that do not watch any."""

import logging
from collections.abc import Callable, Sequence
from threading import Event, Thread

import watchfiles

logger = logging.getLogger(__name__)

MAX_WATCHED_FOLDERS = 16_384
"""A workspace of more is not watched: systems limit watches. Files that are read are looked at again anyway."""

QUIET_MS = 500
"""Changes are told of together after so long a quiet, and at the latest after `MAX_DELAY_MS`."""
MAX_DELAY_MS = 2000


class Watcher:
    """Watches folders, each without what lies in folders below it, in a thread of its own."""

    def __init__(self, tell: Callable[[list[str]], None]):
        self._tell = tell
        self._stop = Event()

    def watch(self, folders: Sequence[str]) -> None:
        """Watch these and no others."""
        self.close()
        if not folders or len(folders) > MAX_WATCHED_FOLDERS:
            return
        self._stop = Event()
        arguments = (tuple(folders), self._stop)
        Thread(target=self._run, args=arguments, name="mercury-watch", daemon=True).start()

    def close(self) -> None:
        """Stop; returns at once."""
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
                    self._tell([path for _, path in changes])
        except (OSError, RuntimeError) as error:
            logger.warning("the workspace is not watched (%s); changes are seen when a file is read", error)
