"""Several requests for one engine: who hands them over, and who is told what came of them. No torch here."""

from collections.abc import Callable, Iterable

from mercury_engine.requests import Fill, FillRequest

More = Callable[[], Iterable[FillRequest]]
"""Requests that came since it was called last."""

Done = Callable[[FillRequest, Fill | Exception], None]
"""Told of each request once, with its fill or the error that `Engine.fill` would raise."""


def one_by_one(fill: Callable[[FillRequest], Fill], more: More, done: Done) -> None:
    """`Engine.fill_all` for whoever can only fill one after another."""
    while requests := list(more()):
        for request in requests:
            try:
                outcome: Fill | Exception = fill(request)
            except Exception as error:
                outcome = error
            done(request, outcome)
