"""Batches the forward passes of several requests.

Code that needs passes is a generator: it yields a `Forward` and receives its result, or yields None where long work of
the host may be interrupted. `DeadlineReached` is thrown into it when its time is up.

Dimensions as in `network.py`; W rows whose log-probabilities are wanted.
"""

from collections import defaultdict
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

from mercury_engine.models.arrays import Array, joined, parted, rows_at
from mercury_engine.models.network import NO_BLOCK, ForwardRequest, KeyValueBlock, Network
from mercury_engine.models.row_answers import NOTHING, RowAnswers

T = TypeVar("T")


class Together(NamedTuple):
    """Forwards of one request that need nothing of each other; their results are a list."""

    forwards: tuple[ForwardRequest, ...]

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.forwards)


Forward = ForwardRequest | Together
"""A forward pass of a network."""

ForwardSteps = Generator[Forward | None, Any, T]
"""A forward returns a `ForwardResult`, forwards together a list of them."""


class DeadlineReached(Exception):
    """The request's time is up: the work so far is the answer."""


class ForwardResult(NamedTuple):
    """Result of a `ForwardRequest`."""

    logp_WV: Array
    """Float32 log-probabilities [W,V] of a forward without a question."""
    block: KeyValueBlock
    """Its tokens' keys and values; none of a canvas, or where the question has a `reveal`."""
    told: RowAnswers
    """The answers to its question."""
    hidden_TC: Array
    """Hidden states of the tokens that it read; none where the question has a `reveal`."""


def run(network: Network, forwards: Sequence[Forward]) -> list[Any]:
    """The results of all forwards, which share passes if possible; no result depends on another."""
    if len(forwards) == 1 and (found := _ahead(network, forwards[0])) is not None:
        return [found]
    alone = [part for each in forwards for part in (each.forwards if isinstance(each, Together) else [each])]
    unread = [each for each in alone if each.rows]
    read = iter(network.read_together(unread) if unread else ())
    results = iter(_results(network, alone, [next(read) if each.rows else _nothing(each) for each in alone]))
    return [
        [next(results) for _ in each.forwards] if isinstance(each, Together) else next(results) for each in forwards
    ]


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


def _ahead(network: Network, forward: Forward) -> ForwardResult | None:
    if isinstance(forward, Together) or forward.question is None or forward.question.reveal is None:
        return None
    told = network.told_ahead(forward)
    return None if told is None else ForwardResult(told.logit_W, NO_BLOCK, told, told.logit_W)


def _nothing(forward: ForwardRequest) -> tuple[Array, KeyValueBlock]:
    """What a forward without tokens reads."""
    assert forward.known_WC is not None
    return forward.known_WC[:0], NO_BLOCK


def _results(
    network: Network, forwards: Sequence[ForwardRequest], read: Sequence[tuple[Array, KeyValueBlock]]
) -> list[ForwardResult]:
    """What is wanted of hidden states [T,C], those of all forwards through the head at once."""
    hidden = [_wanted(part, forward) for (part, _), forward in zip(read, forwards, strict=True)]
    kinds, logp, told = defaultdict[bool | None, list[int]](list), dict[int, Array](), dict[int, RowAnswers]()
    for number, (part, forward) in enumerate(zip(hidden, forwards, strict=True)):
        if len(part):
            kinds[forward.is_canvas if forward.question else None].append(number)
    for is_canvas, numbers in kinds.items():
        parts = [hidden[number] for number in numbers]
        if is_canvas is None:
            logp |= zip(numbers, parted(network.log_probabilities(joined(parts)), parts), strict=True)
        else:
            asked = [question for number in numbers if (question := forwards[number].question)]
            told |= zip(numbers, network.answers(joined(parts), asked, is_canvas), strict=True)
    return [
        ForwardResult(logp.get(number, hidden[number]), block, told.get(number, NOTHING), states)
        for number, (states, block) in enumerate(read)
    ]


def _wanted(hidden_TC: Array, forward: ForwardRequest) -> Array:
    part = rows_at(hidden_TC, forward.wanted)
    return part if forward.known_WC is None else joined([forward.known_WC, part])
