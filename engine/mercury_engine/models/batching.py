"""Batches the forward passes of several requests.

Code that needs passes is a generator: it yields a `Forward` and receives its result, or yields None where long work of
the host may be interrupted. `DeadlineReached` is thrown into it when its time is up.

Dimensions as in `network.py`; W rows whose log-probabilities are wanted.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mercury_engine.models.arrays import Array, joined, parted, rows_at
from mercury_engine.models.network import CanvasForward, ForwardRequest, KeyValueBlock, Network
from mercury_engine.models.row_answers import NOTHING, RowAnswers

T = TypeVar("T")

_NO_BLOCK = KeyValueBlock(*np.empty((2, 0, 1, 0, 0, 0), np.float32))


class Together(NamedTuple):
    """Forwards of one request that need nothing of each other; their results are a list."""

    forwards: tuple[ForwardRequest, ...]

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.forwards)


Forward = ForwardRequest | CanvasForward | Together
"""A forward pass of a network."""

ForwardSteps = Generator[Forward | None, Any, T]
"""What a forward returns is in `ForwardResult` and `CanvasForward`."""


class DeadlineReached(Exception):
    """The request's time is up: the work so far is the answer."""


class ForwardResult(NamedTuple):
    """Result of a `ForwardRequest`."""

    logp_WV: Array
    """Float32 log-probabilities [W,V] of a forward without a question."""
    block: KeyValueBlock
    """Its tokens' keys and values; none where the question has a `reveal`."""
    told: RowAnswers
    """The answers to its question."""
    hidden_TC: Array
    """Hidden states of the tokens that it read; none where the question has a `reveal`."""


def run(network: Network, forwards: Sequence[Forward]) -> list[Any]:
    """The results of all forwards, each kind in one pass if possible; no result depends on another."""
    if len(forwards) == 1 and (found := _ahead(network, forwards[0])) is not None:
        return [found]
    results = dict[int, Any]()
    for kind, runs in _RUNS.items():
        numbers = [number for number, forward in enumerate(forwards) if isinstance(forward, kind)]
        if numbers:
            results |= zip(numbers, runs(network, [forwards[number] for number in numbers]), strict=True)
    return [results[number] for number in range(len(forwards))]


def run_in_parts(network: Network, forward: Forward) -> Generator[None, None, Any]:
    """The result of a forward in a pass of its own, paused between layers if it takes long."""
    if (found := _ahead(network, forward)) is not None:
        return found
    if (
        isinstance(forward, ForwardRequest)
        and forward.rows
        and network.config.layers_at_once(forward.rows) < network.config.num_hidden_layers
    ):
        hidden_TC, block = yield from network.read_in_parts(forward)
        return _results(network, [forward], [(hidden_TC, block)])[0]
    return run(network, [forward])[0]


def _ahead(network: Network, forward: Forward) -> Any:
    if isinstance(forward, Together) or forward.question is None or forward.question.reveal is None:
        return None
    if (told := network.told_ahead(forward)) is None:
        return None
    return told if isinstance(forward, CanvasForward) else ForwardResult(told.logit_W, _NO_BLOCK, told, told.logit_W)


def _read(network: Network, forwards: Sequence[ForwardRequest]) -> list[ForwardResult]:
    unread = [forward for forward in forwards if forward.rows]
    read = iter(network.read_together(unread) if unread else ())
    return _results(network, forwards, [next(read) if each.rows else _nothing(each) for each in forwards])


def _nothing(forward: ForwardRequest) -> tuple[Array, KeyValueBlock]:
    """What a forward without tokens reads."""
    assert forward.known_WC is not None
    return forward.known_WC[:0], _NO_BLOCK


def _results(
    network: Network, forwards: Sequence[ForwardRequest], read: Sequence[tuple[Array, KeyValueBlock]]
) -> list[ForwardResult]:
    """What is wanted of hidden states [T,C], those of all forwards through the head at once."""
    hidden = [_wanted(part, forward) for (part, _), forward in zip(read, forwards, strict=True)]
    questions = [forward.question for forward in forwards]
    asked = [part for part, question in zip(hidden, questions, strict=True) if question is not None and len(part)]
    plain = [part for part, question in zip(hidden, questions, strict=True) if question is None and len(part)]
    asking = [question for question in questions if question is not None and question.rows]
    told = iter(network.answers(joined(asked), asking) if asked else ())
    logp = iter(parted(network.log_probabilities(joined(plain)), plain) if plain else ())
    return [
        ForwardResult(
            next(logp) if len(part) and question is None else part,
            block,
            next(told) if len(part) and question is not None else NOTHING,
            states,
        )
        for part, question, (states, block) in zip(hidden, questions, read, strict=True)
    ]


def _read_each(network: Network, groups: Sequence[Together]) -> list[list[ForwardResult]]:
    """The results of each group; all groups share a pass."""
    results = iter(_read(network, [each for group in groups for each in group.forwards]))
    return [[next(results) for _ in group.forwards] for group in groups]


def _wanted(hidden_TC: Array, forward: ForwardRequest) -> Array:
    part = rows_at(hidden_TC, forward.wanted)
    return part if forward.known_WC is None else joined([forward.known_WC, part])


def _denoise(network: Network, forwards: Sequence[CanvasForward]) -> list[RowAnswers]:
    """The answers about the wanted rows; their vocabulary ends with mask and end."""
    states = network.denoise_together(forwards)
    hidden = [rows_at(part, forward.wanted) for part, forward in zip(states, forwards, strict=True)]
    return network.slot_answers(joined(hidden), [forward.question for forward in forwards])


_RUNS: dict[type, Callable[[Network, Any], list[Any]]] = {
    ForwardRequest: _read,
    CanvasForward: _denoise,
    Together: _read_each,
}
