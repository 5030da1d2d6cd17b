"""Several requests to one engine, answered together."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest
from mercury_engine.api import Answer, Control, Request, TellOutcome
from mercury_engine.models import batching
from mercury_engine.scheduler import Scheduler
from mercury_lab.engine import Engine


def answered(
    engine: Engine, *rounds: Sequence[Request], controls: Sequence[Control] | None = None
) -> dict[int, Answer | Exception]:
    """The outcomes by their requests' identity; one round is handed over before each pass.

    `controls`: those of the first round.
    """
    waiting, outcomes = [*rounds], dict[int, Answer | Exception]()
    given = {id(request): control for request, control in zip(rounds[0], controls or (), strict=False)}

    def more() -> Iterator[tuple[Request, Control, TellOutcome]]:
        for request in waiting.pop(0) if waiting else ():
            yield request, given.get(id(request), Control()), partial(outcomes.__setitem__, id(request))

    Scheduler(engine.reader, engine.steps).answer_all(more)
    return outcomes


def passes_from_now(
    monkeypatch: pytest.MonkeyPatch, at: Callable[[int], None] = lambda number: None
) -> list[list[int]]:
    """The rows of each forward of every pass; `at` is called with a pass's number, from 1, before it runs."""
    seen, run = list[list[int]](), batching.run

    def counted(network, asked):
        seen.append([forward.rows for forward in asked])
        at(len(seen))
        return run(network, asked)

    monkeypatch.setattr(batching, "run", counted)
    return seen
