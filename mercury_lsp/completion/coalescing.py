"""Coalesces requests: obsolete ones are cancelled, and equal ones share one fill.

An editor may request ghost text, a popup list and an edit at the same cursor. None of them makes the others obsolete,
so they run side by side until the text changes.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from threading import Event
from typing import Any, Literal

from mercury_engine.errors import Cancelled
from mercury_engine.serving import resolve

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Snapshot

Feature = Literal["inline", "popup", "edit", "action", "region"]
"""An editor feature; each shows only its own newest answer. `region` is the rewrite around the cursor that ghost text
and next edits share."""


@dataclass(frozen=True, slots=True)
class SuggestionRequest:
    """What one feature requests for one version of a document."""

    feature: Feature
    snapshot: Snapshot
    offset: int | None
    """None if the user asked by key: no automatic request may share the answer."""
    invoked: bool = False
    """The user asked, not the editor on its own."""
    is_watched: bool = False
    """The client shows every denoise step."""
    is_next_edit: bool = False
    """It requests an edit elsewhere, not a fill."""

    def supersedes(self, older: "SuggestionRequest") -> bool:
        """Whether this request makes an older one obsolete.

        A feature's newest request supersedes its older ones, unless it repeats them. A request that the user invoked
        is superseded in no other way; one that the editor made is superseded by any request for a newer text.
        """
        if self.snapshot.uri != older.snapshot.uri:
            return False
        if self.feature == older.feature:
            return not self.is_answered_by(older)
        return not older.invoked and not self._has_same_text(older)

    def is_answered_by(self, other: "SuggestionRequest") -> bool:
        """Whether the answer to another request also answers this one."""
        is_same_cursor = self._has_same_text(other) and self.offset == other.offset
        is_same_sort = self._is_region == other._is_region and self.is_next_edit == other.is_next_edit
        if not is_same_sort or self.is_watched:
            return False
        return is_same_cursor and (other.invoked or not self.invoked)

    @property
    def _is_region(self) -> bool:
        return self.feature == "region"

    def _has_same_text(self, other: "SuggestionRequest") -> bool:
        # Versions are not compared: some clients send one twice, and an edit may change nothing.
        return self.snapshot.uri == other.snapshot.uri and self.snapshot.source is other.snapshot.source


Search = Callable[[], Coroutine[Any, Any, list[Suggestion]]]


class SharedAnswer:
    """An answer being worked out; everyone waiting receives it in the same turn of the event loop."""

    def __init__(self, search: Search, cancel: Event):
        """What a search returns or raises, which starts now."""
        self._cancel, self._task, self._waiting = cancel, asyncio.ensure_future(search()), 0

    def wait(self) -> "asyncio.Future[list[Suggestion]]":
        """The answer, for one who waits; resolving or cancelling it leaves the others alone."""
        self._waiting += 1
        return asyncio.shield(self._task)

    def leave(self) -> None:
        """One stops waiting; after the last one the engine stops before its next step."""
        self._waiting -= 1
        if not self._waiting:
            self._cancel.set()
            self._task.cancel()


@dataclass(frozen=True, slots=True, eq=False)
class _WaitingRequest:
    request: SuggestionRequest
    shared: SharedAnswer
    future: "asyncio.Future[list[Suggestion]]"


class Coalescer:
    """The requests of one connection that wait for an answer; used on the event loop's thread only."""

    def __init__(self) -> None:
        self._waiting: list[_WaitingRequest] = []

    async def answer(self, request: SuggestionRequest, start: Callable[[], SharedAnswer]) -> list[Suggestion]:
        """The answer to a request, from equal work under way or from work that `start` begins.

        Raises Cancelled when the request is superseded, and whatever the work raises. The work is cancelled once nobody
        waits for it, including when the caller's task is cancelled.
        """
        equal = (waiting.shared for waiting in self._waiting if request.is_answered_by(waiting.request))
        shared = next(equal, None) or start()
        waiting = _WaitingRequest(request, shared, shared.wait())
        self._waiting.append(waiting)
        try:
            return await waiting.future
        finally:
            self._drop(waiting)

    def cancel_where(self, is_obsolete: Callable[[SuggestionRequest], bool]) -> None:
        self._end(is_obsolete, lambda: Cancelled("a newer request for this document replaced it"))

    def silence_where(self, is_forbidden: Callable[[SuggestionRequest], bool]) -> None:
        """Answer the matching requests with nothing."""
        self._end(is_forbidden, list)

    def _end(
        self, matches: Callable[[SuggestionRequest], bool], outcome: Callable[[], list[Suggestion] | Cancelled]
    ) -> None:
        for waiting in [each for each in self._waiting if matches(each.request)]:
            resolve(waiting.future, outcome())
            self._drop(waiting)

    def _drop(self, waiting: _WaitingRequest) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            waiting.shared.leave()
