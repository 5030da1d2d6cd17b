"""Ends a hub that hangs, so that its editors go on with another one.

Only Linux tells which process is at the other end, and only there a hub can be replaced.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from mercury_lsp.daemon import lock

logger = logging.getLogger(__name__)

POLL_SECONDS = 5.0
"""Between two polls of the processes that relay for editors."""

POLLS_BEFORE_PING, POLLS_BEFORE_END = 1, 3
"""Silent polls before a process is pinged, and before it is ended. A machine that slept has polled once."""


@dataclass(slots=True, eq=False)
class Peer:
    """A process that relays for editors."""

    pings: list[Callable[[], None]] = field(default_factory=list)
    """Ping it, over each of its connections."""
    waiting: int = 0
    """How many of its connections we wait for; the others are being worked for, and may hold more of its messages."""
    was_heard: bool = False
    """Whether anything arrived since the last poll."""
    silent_polls: int = 0

    async def heard(self, reading: Awaitable[bytes]) -> bytes:
        """What is read from a connection."""
        self.waiting += 1
        try:
            data = await reading
        finally:
            self.waiting -= 1
        self.was_heard = True
        return data

    def poll(self) -> None:
        """Count the polls since it was heard."""
        is_silent = not self.was_heard and self.waiting == len(self.pings)
        self.silent_polls = self.silent_polls + 1 if is_silent else 0
        self.was_heard = False


class HubWatch:
    """Watches the processes at the other end of a daemon's connections."""

    def __init__(self, hub_lock: Path):
        self._hub_lock = hub_lock
        self._peers: dict[int, Peer] = {}

    @contextmanager
    def connected(self, process: int | None, ping: Callable[[], None]) -> Iterator[Peer]:
        """The process at the other end of a connection, watched meanwhile; None if it is not known."""
        peer = self._peers.setdefault(process, Peer()) if process is not None else Peer()
        peer.pings.append(ping)
        try:
            yield peer
        finally:
            peer.pings.remove(ping)
            if process is not None and not peer.pings:
                self._peers.pop(process, None)

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            for process, peer in list(self._peers.items()):
                peer.poll()
                if peer.silent_polls == POLLS_BEFORE_PING:
                    for ping in peer.pings:
                        ping()
                elif peer.silent_polls >= POLLS_BEFORE_END:
                    self._end(process)

    def _end(self, process: int) -> None:
        """End the process if it is the hub; a relay that was stopped along with its editor goes on with it."""
        with suppress(OSError):
            if lock.owner(self._hub_lock) == process:
                logger.warning("the hub, process %d, does not answer; it is ended for another", process)
                os.kill(process, signal.SIGKILL)
