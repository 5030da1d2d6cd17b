"""Several requests to one engine, answered together."""

from collections.abc import Iterator, Sequence
from functools import partial

from mercury_engine.api import Answer, Control, Request, TellOutcome
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
