"""Coalesces requests: obsolete ones are cancelled, and equal ones share one fill.

An editor may request ghost text, a popup list and an edit at the same cursor. None of them makes the others obsolete,
so they run side by side until the text changes.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, Literal

from mercury_engine.api import OnStep
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
    on_step: OnStep | None = None
    """Shows the canvas after each denoise step."""
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
        is_region = self.feature == "region"
        if is_region != (other.feature == "region") or self.is_next_edit != other.is_next_edit or self.on_step:
            return False
        is_same_cursor = self._has_same_text(other) and self.offset == other.offset
        return is_same_cursor and (other.invoked or not self.invoked)

    def _has_same_text(self, other: "SuggestionRequest") -> bool:
        # Versions are not compared: some clients send one twice, and an edit may change nothing.
        return self.snapshot.uri == other.snapshot.uri and self.snapshot.source is other.snapshot.source


Search = Callable[[Event], Coroutine[Any, Any, list[Suggestion]]]
"""Begins to work out an answer; once the event is set, the engine stops before its next step."""


@dataclass(frozen=True, slots=True, eq=False)
class _WaitingRequest:
    """A request and its answer, which it may share with others."""

    request: SuggestionRequest
    search: asyncio.Task[list[Suggestion]]
    cancel: Event
    answer: asyncio.Future[list[Suggestion]]


class Coalescer:
    """The requests of one connection that wait for an answer; used on the event loop's thread only."""

    def __init__(self) -> None:
        self._waiting: list[_WaitingRequest] = []

    async def answer(self, request: SuggestionRequest, search: Search) -> list[Suggestion]:
        """The answer to a request, from an equal search under way or from this one.

        Raises Cancelled when the request is superseded, and whatever the search raises. The search is cancelled once
        nobody waits for it, including when the caller's task is cancelled.
        """
        equal = next((each for each in self._waiting if request.is_answered_by(each.request)), None)
        cancel = Event() if equal is None else equal.cancel
        task = asyncio.ensure_future(search(cancel)) if equal is None else equal.search
        waiting = _WaitingRequest(request, task, cancel, asyncio.get_running_loop().create_future())
        task.add_done_callback(partial(_pass_on, waiting.answer))
        self._waiting.append(waiting)
        try:
            return await waiting.answer
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
            resolve(waiting.answer, outcome())
            self._drop(waiting)

    def _drop(self, waiting: _WaitingRequest) -> None:
        """Stop waiting; after the last one the search ends."""
        self._waiting = [each for each in self._waiting if each is not waiting]
        if all(each.search is not waiting.search for each in self._waiting):
            waiting.cancel.set()
            waiting.search.cancel()


def _pass_on(answer: asyncio.Future[list[Suggestion]], search: asyncio.Task[list[Suggestion]]) -> None:
    if search.cancelled():
        answer.cancel()
    else:
        resolve(answer, search.exception() or search.result())
