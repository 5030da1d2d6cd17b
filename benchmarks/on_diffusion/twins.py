"""Whether fills are those that the NumPy twin's answers give.

A pass that the C kernels have run is not run again for the twin: its answers come from the same rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from mercury_engine.api import Control, FillRequest
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.models.arrays import Array
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, Network
from mercury_engine.models.row_answers import RowAnswers, RowQuestion
from mercury_lab.engine import Engine, finished

from tests.support.asking import answered

WAYS = (
    DiffusionOptions(),
    DiffusionOptions(threshold=0.9),
    DiffusionOptions(schedule="linear"),
    DiffusionOptions(schedule="path planning"),
)
"""Fills take turns among them."""

SLOTS, BEFORE, AFTER = 8, 400, 200
"""Most slots of a fill, and characters of its context; short, for the twin takes long."""

Read = tuple[Array, KeyValueBlock]


@dataclass
class Remembering:
    """A network that runs no pass twice."""

    network: Network
    read: dict[tuple[int, ...], Read] = field(default_factory=dict)
    """Of one fill, by the rows' tokens."""

    @property
    def config(self) -> Any:
        return self.network.config

    def read_together(self, forwards: Sequence[ForwardRequest]) -> list[Read]:
        rows = [tuple(each.ids_T.tolist()) for each in forwards]
        new = [number for number, each in enumerate(rows) if each not in self.read]
        found = self.network.read_together([forwards[number] for number in new]) if new else []
        self.read |= zip((rows[number] for number in new), found, strict=True)
        return [self.read[each] for each in rows]

    def answers(self, hidden_WC: Array, questions: Sequence[RowQuestion], is_canvas: bool) -> list[RowAnswers]:
        return self.network.answers(hidden_WC, questions, is_canvas)

    def told_ahead(self, forward: ForwardRequest) -> None:
        return None


class Twin(Remembering):
    """The same with the twin's answers."""

    def answers(self, hidden_WC: Array, questions: Sequence[RowQuestion], is_canvas: bool) -> list[RowAnswers]:
        rows, vocabulary = len(hidden_WC), self.network.config.vocab_size
        everything = RowQuestion.of([None] * rows, vocabulary, asked=range(vocabulary))
        [told] = self.network.answers(hidden_WC, [everything])
        logits, found = told.asked_WA, list[RowAnswers]()
        for question in questions:
            found.append(answered(logits[: question.rows], question))
            logits = logits[question.rows :]
        return found


def compared(engine: Engine, requests: Sequence[FillRequest]) -> dict[str, int]:
    """The number of fills, of those with the twin's text and steps, and of different texts."""
    engines = [(engine.varied(way), engine.varied(way)) for way in WAYS]
    same, texts = 0, set[str]()
    for number, request in enumerate(requests):
        asked = replace(
            request,
            near=request.near[-BEFORE:],
            far=(),
            suffix=tuple(block[:AFTER] for block in request.suffix[:1]),
            lookup_text=(),
            max_slots=SLOTS,
            effort="low",
        )
        fast, slow = engines[number % len(engines)]
        network = Remembering(engine.reader)
        found = finished(fast.decoder.fill(asked, Control()), cast(Network, network))
        twin = cast(Network, Twin(engine.reader, network.read))
        expected = finished(slow.decoder.fill(asked, Control()), twin)
        same += (found.text, found.steps) == (expected.text, expected.steps)
        texts.add(found.text)
    return {"fills": len(requests), "same": same, "different_texts": len(texts)}
