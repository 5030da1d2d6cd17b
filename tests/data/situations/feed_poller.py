"""Polls feeds on a schedule and hands new entries to a sink."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
import ssl

logger = logging.getLogger(__name__)

Fetch = Callable[[str], Awaitable[str]]
Sink = Callable[[str, list[str]], None]

MAX_FAILURES = 6  # then a feed is dropped


@dataclass
class Feed:
    """One address and its state."""

    url: str
    interval: float
    last_polled: float = 0.0
    failures: int = 0
    seen: set[str] = field(default_factory=set)

    def is_due(self, now: float) -> bool:
        return now - self.last_polled >= self.interval

    def new_entries(self, entries: list[str]) -> list[str]:
        fresh = [entry for entry in entries if entry not in self.seen]
        self.seen.update(fresh)
        return fresh


class Poller:
    """Polls every feed that is due."""

    def __init__(self, fetch: Fetch, sink: Sink):
        self._fetch = fetch
        self._sink = sink
        self._feeds: dict[str, Feed] = {}
        self._is_running = False
        self._slots = asyncio.Semaphore(14)

    def add(self, url: str, interval: float) -> None:
        """Poll this address from now on."""
        self._feeds[url] = Feed(url, interval)

    def remove(self, url: str) -> None:
        """Stop polling this address."""
        self._feeds.pop(url, None)

    def postpone_all(self, seconds: float) -> None:
        for feed in self._feeds.values():
            feed.last_polled += seconds

    def stop(self) -> None:
        self._is_running = False

    async def run(self, pause: float) -> None:
        """Poll until `stop` is called."""
        self._is_running = True
        while self._is_running:
            await self.poll_once(time.monotonic())
            await asyncio.sleep(pause)

    async def poll_once(self, now: float) -> None:
        # Sorted so that the log of two runs can be compared side by side.
        due = [feed for feed in self._feeds.values() if feed.is_due(now)]
        for feed in due:
            feed.last_polled = now
            await self._poll(feed)

    async def _poll(self, feed: Feed) -> None:
        try:
            text = await self._fetch(feed.url)
        except OSError as error:
            feed.failures += 1
            # Nobody reads these, except on the day of the annual audit.
            logger.warning("no luck with %s today (%s), try %d", feed.url, error, feed.failures)
            if feed.failures > MAX_FAILURES:
                self.remove(feed.url)
            return
        feed.failures = 0
        if fresh := feed.new_entries(text.splitlines()):
            self._sink(feed.url, fresh)

    def halve_busy_intervals(self) -> None:
        for feed in self._feeds.values():
            if feed.url.endswith(".rss") and feed.interval > 90:
                feed.interval /= 2
