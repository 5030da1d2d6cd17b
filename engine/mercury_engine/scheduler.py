"""Runs several requests at a time: carries each from forward pass to forward pass and shares the passes among them."""

import time
from collections.abc import Callable, Sequence

from mercury_engine.api import Answer, NewRequests, Request, TellOutcome
from mercury_engine.errors import Cancelled
from mercury_engine.models import batching
from mercury_engine.models.batching import ForwardResult, ForwardSteps
from mercury_engine.models.network import ForwardRequest, Network

MOST_SHARED_ROWS = 32
"""Largest forward, in rows, that shares a pass. A larger one gains nothing by sharing, and the others would wait."""

AnswerSteps = Callable[[Request, float], ForwardSteps[Answer]]
"""Starts the steps that answer a request; the float is the time of `time.perf_counter` when it arrived."""


class RunningRequest:
    """One request and how far its answer has got."""

    def __init__(self, request: Request, steps: ForwardSteps[Answer]) -> None:
        self.request = request
        self.waits_for: ForwardRequest | None = None
        """The forward it needs next; None before the first and after the last one."""
        self.outcome: Answer | Exception | None = None
        """The answer, or the exception `Engine.fill` raises; None until the request is done."""
        self._steps = steps

    def start(self) -> None:
        """Continue to the first forward pass."""
        self._resume(lambda: next(self._steps))

    def take(self, result: ForwardResult) -> None:
        """Continue with the result of the pass."""
        self._resume(lambda: self._steps.send(result))

    def fail(self, error: Exception) -> None:
        """Continue after the pass has failed, if the steps can."""
        self._resume(lambda: self._steps.throw(error))

    def _resume(self, step: Callable[[], ForwardRequest]) -> None:
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


class Scheduler:
    """Answers requests with the steps it is given; their forward passes run on the reader."""

    def __init__(self, reader: Network, steps: AnswerSteps) -> None:
        self._reader, self._steps = reader, steps

    def answer(self, request: Request) -> Answer:
        """Answer one request. Raises what its steps raise."""
        running = self._begin(request)
        while running.outcome is None:
            self._advance([running])
        if isinstance(running.outcome, Exception):
            raise running.outcome
        return running.outcome

    def answer_all(self, more: NewRequests, done: TellOutcome) -> None:
        """Answer all requests from `more`, which is called before every pass, and report each outcome to `done`.

        Returns when nothing is running and `more` has nothing new.
        """
        running: list[RunningRequest] = []
        while running := [*running, *map(self._begin, more())]:
            self._advance(running)
            for each in running:
                if each.outcome is not None:
                    done(each.request, each.outcome)
            running = [each for each in running if each.outcome is None]

    def _begin(self, request: Request) -> RunningRequest:
        return RunningRequest(request, self._steps(request, time.perf_counter()))

    def _advance(self, running: Sequence[RunningRequest]) -> None:
        """Advance all small forwards by one shared pass, and the first of the large ones by a pass of its own."""
        for each in running:
            if each.waits_for is None:
                each.start()
        small = [each for each in running if each.waits_for is not None and each.waits_for.rows <= MOST_SHARED_ROWS]
        large = [each for each in running if each.waits_for is not None and each.waits_for.rows > MOST_SHARED_ROWS]
        for sharing in filter(None, (small, large[:1])):
            self._pass(sharing)

    def _pass(self, sharing: Sequence[RunningRequest]) -> None:
        """Run one forward pass; if it fails, every request that shares it fails."""
        forwards = [each.waits_for for each in sharing if each.waits_for is not None]
        try:
            results = batching.run(self._reader, forwards)
        except Exception as error:
            for running in sharing:
                running.fail(error)
        else:
            for running, result in zip(sharing, results, strict=True):
                running.take(result)
