"""The rewrite of the text as it will be once the edit on display is accepted, begun while the user looks at it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from threading import Event

from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.next_edits.rewriting import RewrittenLines
from mercury_lsp.documents.document import Snapshot

Rewriting = Callable[[Event], Awaitable[Sequence[RewrittenLines] | None]]


class Ahead:
    """At most one such rewrite; used on the event loop's thread only."""

    def __init__(self) -> None:
        self._region: Place | None = None
        self._shown = ""
        """The text in which the edit is on display."""
        self._cancel = Event()
        self._asked: asyncio.Task[Sequence[RewrittenLines] | None] | None = None

    def begin(self, shown: Snapshot, region: Place, rewriting: Rewriting) -> None:
        """Rewrite the region of the text that the edit on display in `shown` leaves when accepted."""
        self.drop()
        self._region, self._shown, self._cancel = region, shown.text, Event()
        self._asked = asyncio.ensure_future(_quietly(rewriting(self._cancel)))

    def drop(self) -> None:
        """Cancel the rewrite: nobody will ask for it."""
        self._cancel.set()
        self._region = self._asked = None

    def keep_for(self, snapshot: Snapshot) -> None:
        """Drop the rewrite unless the user is still looking at the edit or has accepted it."""
        ahead = self._region
        is_its = ahead is not None and snapshot.uri == ahead.snapshot.uri
        if ahead is not None and is_its and snapshot.text not in (self._shown, ahead.snapshot.text):
            self.drop()

    async def taken(self, region: Place) -> Sequence[RewrittenLines] | None:
        """The edits of a region rewritten ahead; None if it was not, or if that failed."""
        ahead, asked = self._region, self._asked
        if ahead is None or asked is None or region.snapshot.uri != ahead.snapshot.uri:
            return None
        if region.line != ahead.line or region.snapshot.text != ahead.snapshot.text:  # another line has another window
            return None
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            self.drop()
            raise


async def _quietly(rewriting: Awaitable[Sequence[RewrittenLines] | None]) -> Sequence[RewrittenLines] | None:
    """The rewrite; None if it fails: the next request reports why."""
    with suppress(Exception):
        return await rewriting
    return None
