"""Who waits for which fill: questions that nobody needs answered any more give way, and equal ones share a fill.

An editor may ask for ghost text, a popup list and an edit at one and the same cursor. None of them is newer than the
others in any way that matters, so they stand side by side until the text changes.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from threading import Event
from typing import Any, Literal

from mercury_engine.errors import Cancelled

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.engine_host.outcome import put

Feature = Literal["inline", "popup", "edit", "panel", "action"]
"""Of the editor; each shows its own newest answer only."""


@dataclass(frozen=True, slots=True)
class SuggestionRequest:
    """What one feature asks about a document as it is now."""

    feature: Feature
    snapshot: Snapshot
    offset: int
    invoked: bool = False
    """The user asked; else the editor did by itself."""
    is_watched: bool = False
    """Its denoising is shown, from the first step on."""
    is_away: bool = False
    """It asks for an edit elsewhere, not for a fill."""

    def supersedes(self, older: "SuggestionRequest") -> bool:
        """Whether the older one needs no answer any more.

        A feature's newest question does that, unless it is the same one again. What the user asked for by key gives
        way to nothing else; what an editor asked by itself does to any question about a newer text.
        """
        if self.snapshot.uri != older.snapshot.uri:
            return False
        if self.feature == older.feature:
            return not self.is_answered_by(older)
        return not older.invoked and not self._is_about_the_text_of(older)

    def is_answered_by(self, other: "SuggestionRequest") -> bool:
        """Whether the other one's answer says all that this one asks for."""
        is_same_place = self._is_about_the_text_of(other) and self.offset == other.offset
        if self.is_away != other.is_away or self.is_watched:
            return False
        return is_same_place and (other.invoked or not self.invoked)

    def _is_about_the_text_of(self, other: "SuggestionRequest") -> bool:
        # Not the version: some clients send one twice, and an edit may change nothing.
        return self.snapshot.uri == other.snapshot.uri and self.snapshot.source is other.snapshot.source


class SharedAnswer:
    """A fill under way and what is made of it; who waits for it has the answer in the same turn of the loop."""

    def __init__(self, cancel: Event):
        self._cancel = cancel
        self._waiting: list[asyncio.Future[list[Suggestion]]] = []
        self._outcome: list[Suggestion] | Exception | None = None
        self._task: asyncio.Task[list[Suggestion]] | None = None

    @classmethod
    def of(cls, finding: Coroutine[Any, Any, list[Suggestion]], cancel: Event) -> "SharedAnswer":
        """What a coroutine will return or raise."""
        made = cls(cancel)

        def ended(task: "asyncio.Task[list[Suggestion]]") -> None:
            error = None if task.cancelled() else task.exception()
            if isinstance(error, Exception):
                made.settle(error)
            elif not task.cancelled():
                made.settle(task.result())

        made._task = asyncio.ensure_future(finding)
        made._task.add_done_callback(ended)
        return made

    def settle(self, outcome: list[Suggestion] | Exception) -> None:
        """It is over."""
        self._outcome = outcome
        for answer in self._waiting:
            put(outcome, answer)

    def wait(self) -> "asyncio.Future[list[Suggestion]]":
        """A future of its own for who waits."""
        answer: asyncio.Future[list[Suggestion]] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        if self._outcome is not None:
            put(self._outcome, answer)
        return answer

    def leave(self, answer: "asyncio.Future[list[Suggestion]]") -> None:
        """Nobody waits for this future any more; when nobody waits for any, the engine stops before its next step."""
        self._waiting.remove(answer)
        if not self._waiting:
            self._cancel.set()
            if self._task is not None:
                self._task.cancel()


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    question: SuggestionRequest
    pending: SharedAnswer
    answer: "asyncio.Future[list[Suggestion]]"


class Coalescer:
    """Those of one connection that wait for an answer; to be used from the event loop's thread."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []

    async def ask(self, question: SuggestionRequest, begin: Callable[[], SharedAnswer]) -> list[Suggestion]:
        """The answer, from a fill that is under way for the same question or that begins now.

        Raises Cancelled when the question is superseded, and whatever the fill raises. A fill is given up when nobody
        waits for it any more, also when the caller's task is cancelled.
        """
        shared = (each.pending for each in self._waiting if question.is_answered_by(each.question))
        pending = next(shared, None) or begin()
        waiting = _Waiting(question, pending, pending.wait())
        self._waiting.append(waiting)
        try:
            return await waiting.answer
        finally:
            self._drop(waiting)

    def supersede(self, is_over: Callable[[SuggestionRequest], bool]) -> None:
        """Nobody needs the answers to these any more."""
        for waiting in [each for each in self._waiting if is_over(each.question)]:
            put(Cancelled("a newer request for this document took its place"), waiting.answer)
            self._drop(waiting)

    def _drop(self, waiting: _Waiting) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            waiting.pending.leave(waiting.answer)
