"""Several requests for one engine: who hands them over, and who is told what came of them. No torch here."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from mercury_engine.api import Answer, Fill, FillRequest, Request

NewRequests = Callable[[], Iterable[Request]]
"""Requests that came since it was called last."""

TellOutcome = Callable[[Request, Answer | Exception], None]
"""Told of each request once, with its answer or the error that `SequentialEngine.fill` would raise."""


class SequentialEngine(Protocol):
    """What answers one request after another."""

    def fill(self, request: FillRequest) -> Fill: ...

    def score(self, request: FillRequest, texts: Sequence[str]) -> list[float]: ...


def one_by_one(engine: SequentialEngine, more: NewRequests, done: TellOutcome) -> None:
    """`answer_all` for whoever can only answer one request after another."""
    while requests := list(more()):
        for request in requests:
            try:
                outcome = _answer(engine, request)
            except Exception as error:
                done(request, error)
            else:
                done(request, outcome)


def _answer(engine: SequentialEngine, request: Request) -> Answer:
    if isinstance(request, FillRequest):
        return engine.fill(request)
    return engine.score(request.gap, request.texts)
