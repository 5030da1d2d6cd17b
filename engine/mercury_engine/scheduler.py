"""Runs several requests at a time, which share forward passes; clients are served in turn.

Only here are deadlines and cancel flags checked: before every pass, between the parts of a long one, and where steps
pause.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from mercury_engine.api import Answer, Arrived, Control, GenerateRequest, NewRequests, Request, TellOutcome
from mercury_engine.errors import Cancelled
from mercury_engine.models import batching
from mercury_engine.models.batching import DeadlineReached, Forward, ForwardSteps
from mercury_engine.models.network import ForwardRequest, Network

MOST_RUNNING = 4
"""Concurrent requests: one more row costs a fifth of a separate pass, but slows the others down."""

MOST_SHARED_ROWS = 32
"""Longest prefill that shares a pass. More rows gain nothing by sharing, and the others would wait."""

MOST_PASSED_OVER = 20
"""Interactive passes that a patient prefill yields to, for one part of its own."""

AnswerSteps = Callable[[Request, Control], ForwardSteps[Answer]]
"""Starts the steps that answer a request."""


class RunningRequest:
    """One request and its progress."""

    def __init__(self, request: Request, control: Control, steps: ForwardSteps[Answer]) -> None:
        self.request, self.control, self._steps = request, control, steps
        self.waits_for: Forward | None = None
        """The forward it needs next; None when it needs none now."""
        self.under_way: Generator[None, None, Any] | None = None
        """The parts of that forward that are still to run, if it has a pass of its own that has begun."""
        self.outcome: Answer | Exception | None = None
        """The answer, or the exception that answering raises; None until the request is done."""
        self._started = time.perf_counter()
        self._deadline = None if request.deadline_ms is None else self._started + request.deadline_ms / 1e3
        """When its time is up; None if that never happens, or once the steps were told."""

    @property
    def is_patient(self) -> bool:
        """Whether nobody waits for it key by key, as for a text."""
        return self.control.is_patient or isinstance(self.request, GenerateRequest)

    def take(self, result: object) -> None:
        """Continue with the result of the pass; None at the start."""
        if not self._is_cancelled():
            self._continue(lambda: self._steps.send(result))

    def fail(self, error: Exception) -> None:
        """Continue after the pass has failed, if the steps can."""
        self._continue(lambda: self._steps.throw(error))

    def check(self) -> None:
        """Stop if the request was cancelled; if its time is up, tell the steps, which then end."""
        if not self._is_cancelled() and self._deadline is not None and time.perf_counter() >= self._deadline:
            self._deadline = None
            self._continue(lambda: self._steps.throw(DeadlineReached()))

    def _is_cancelled(self) -> bool:
        if self.outcome is None and self.control.cancel.is_set():
            self._steps.close()
            self.waits_for = self.under_way = None
            self.outcome = Cancelled("superseded by a newer request")
        return self.outcome is not None

    def _continue(self, step: Callable[[], Forward | None]) -> None:
        """Continue to the next forward pass, with checks in pauses. A pass under way is given up."""
        self.under_way = None
        try:
            self.waits_for = step()
            while self.waits_for is None and self.outcome is None:
                self.check()
                if self.waits_for is None and self.outcome is None:
                    self.waits_for = next(self._steps)
        except StopIteration as end:
            self.waits_for, self.outcome = None, replace(end.value, elapsed=time.perf_counter() - self._started)
        except Exception as error:
            self.waits_for, self.outcome = None, error


class Turns:
    """The requests that wait, and whose turn it is.

    Users' requests precede those that look ahead, which run alone. Of equal ones the client served longest ago comes
    first, so nobody waits for more than one answer of each other client.
    """

    def __init__(self) -> None:
        self.waiting: list[Arrived] = []
        self._served: list[object] = []
        """Clients, the one served longest ago first."""

    def starting(self, running: int) -> Iterator[Arrived]:
        """Those that start now, beside the `running` ones; a cancelled one starts at once, and ends."""
        while self.waiting:
            first = min(self.waiting, key=self._order)  # keeps the order of arrival among equals
            control = first[1]
            if not control.cancel.is_set():
                if running >= (1 if control.is_ahead else MOST_RUNNING):
                    return
                running += 1
                self._served = [*(each for each in self._served if each is not control.client), control.client]
            self.waiting = [each for each in self.waiting if each is not first]
            yield first

    def _order(self, arrived: Arrived) -> tuple[bool, bool, int]:
        control = arrived[1]
        turn = self._served.index(control.client) + 1 if control.client in self._served else 0
        return not control.cancel.is_set(), control.is_ahead, turn


class Scheduler:
    """Answers requests with the steps it is given; forward passes that read text run on the network."""

    def __init__(self, network: Network, steps: AnswerSteps) -> None:
        self._network, self._steps = network, steps
        self._passed_over = 0
        """Passes that a prefill has yielded to since its last part."""

    def answer_all(self, more: NewRequests) -> None:
        """Answer all requests from `more`, which is called before every pass, and tell each outcome.

        Returns when there are none and `more` has nothing new. What it raises is every request's outcome.
        """
        turns, running = Turns(), dict[RunningRequest, TellOutcome]()
        try:
            while True:
                turns.waiting += more()
                if any(not control.is_ahead for _, control, _ in turns.waiting):
                    for each in running:
                        if each.control.is_ahead:  # it stops before the next pass
                            each.control.cancel.set()
                for request, control, tell in turns.starting(len(running)):
                    running[RunningRequest(request, control, self._steps(request, control))] = tell
                if not running:
                    return
                self._advance([*running])
                for each in [*running]:
                    if each.outcome is not None:
                        running.pop(each)(each.outcome)
        except BaseException as raised:  # a library may even want to exit
            error = raised if isinstance(raised, Exception) else RuntimeError(repr(raised))
            for tell in (*running.values(), *(tell for _, _, tell in turns.waiting)):
                tell(error)
            raise

    def _advance(self, running: Sequence[RunningRequest]) -> None:
        """Advance all requests that can share a pass, and the first of the others by a part of its own pass."""
        for each in running:
            if each.waits_for is None:
                each.take(None)
            each.check()
        waiting = [(each, forward) for each in running if (forward := each.waits_for) is not None]
        shared = [each for each, forward in waiting if _may_share(forward)]
        alone = sorted((each for each, forward in waiting if not _may_share(forward)), key=lambda each: each.is_patient)
        if shared:
            self._pass(shared)
        if alone and not self._lets_go_first(alone[0], shared):
            self._part(alone[0])

    def _lets_go_first(self, running: RunningRequest, shared: Sequence[RunningRequest]) -> bool:
        """Whether this part of a prefill yields to interactive requests."""
        waits = running.is_patient and not all(each.is_patient for each in shared)
        self._passed_over = self._passed_over + 1 if waits and self._passed_over < MOST_PASSED_OVER else 0
        return self._passed_over > 0

    def _part(self, running: RunningRequest) -> None:
        """Run the next part of a request's own pass; if it fails, the request does."""
        if running.under_way is None:
            assert running.waits_for is not None
            running.under_way = batching.run_in_parts(self._network, running.waits_for)
        try:
            next(running.under_way)
        except StopIteration as end:
            running.take(end.value)
        except Exception as error:
            running.fail(error)

    def _pass(self, sharing: Sequence[RunningRequest]) -> None:
        """Run one forward pass; if it fails, every request that shares it fails."""
        forwards = [each.waits_for for each in sharing if each.waits_for is not None]
        try:
            results = batching.run(self._network, forwards)
        except Exception as error:
            for running in sharing:
                running.fail(error)
        else:
            for running, result in zip(sharing, results, strict=True):
                running.take(result)


def _may_share(forward: Forward) -> bool:
    """Whether others gain by sharing a pass with it; a long prefill would make them wait."""
    return (isinstance(forward, ForwardRequest) and forward.is_canvas) or forward.rows <= MOST_SHARED_ROWS
