"""An answer under way."""

from collections.abc import Callable

from mercury_engine.api import Answer, Request
from mercury_engine.errors import Cancelled
from mercury_engine.models.batching import ForwardResult, ForwardSteps
from mercury_engine.models.network import ForwardRequest


class RunningRequest:
    """One request's answer, carried on from forward pass to forward pass."""

    def __init__(self, request: Request, steps: ForwardSteps[Answer]) -> None:
        self.request = request
        self.waits_for: ForwardRequest | None = None
        """None before the first one, and at the end."""
        self.outcome: Answer | Exception | None = None
        """At the end: the answer, or what `Engine.fill` raises."""
        self._steps = steps

    def start(self) -> None:
        """Go on to the first forward pass."""
        self._go_on(lambda: next(self._steps))

    def take(self, given: ForwardResult) -> None:
        """Go on with what the pass gave."""
        self._go_on(lambda: self._steps.send(given))

    def fail(self, error: Exception) -> None:
        """Go on, if possible, although the pass has failed."""
        self._go_on(lambda: self._steps.throw(error))

    def _go_on(self, step: Callable[[], ForwardRequest]) -> None:
        self.waits_for = None
        try:
            if self.request.cancel.is_set():
                self._steps.close()
                raise Cancelled("superseded by a newer request")
            self.waits_for = step()
        except StopIteration as end:
            self.outcome = end.value
        except Exception as error:
            self.outcome = error
