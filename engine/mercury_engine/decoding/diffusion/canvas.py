"""The canvas of a masked diffusion model: the slots after the accepted tokens of a hypothesis.

A slot holds a mask, or the token that a step has unmasked. Slots are unmasked in any order; those at the left end are
then accepted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from mercury_engine.api import Control, SlotView
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis


@dataclass(slots=True)
class Canvas:
    """The slots of one fill; begins with masks only."""

    written: Hypothesis
    """The accepted tokens in front of the slots."""
    ids: list[int] = field(init=False)
    """The token of every slot."""
    probabilities: list[float | None] = field(init=False)
    """Of every slot when it was unmasked; None for masks."""

    def __post_init__(self) -> None:
        self._open()

    def accept(self, rules: GapRules) -> None:
        """Accept unmasked slots from the left; those after a part of a word to spell are masked again."""
        written = self.written
        while not written.ended and self.ids and (probability := self.probabilities[0]) is not None:
            written.accept(self.ids.pop(0), probability)
            del self.probabilities[0]
            if written.spell:
                self._open()
            else:
                written.ended |= rules.leaves_gap(written)

    def repair(self, rules: GapRules, control: Control) -> None:
        """If the ended text breaks the document's syntax, take it back from there on and mask it again."""
        if self.written.ended and rules.repaired(control, self.written):
            self._open()

    def show(self, control: Control) -> None:
        """Report the canvas to whoever watches."""
        if control.on_step is not None:
            control.on_step(self.written.view(() if self.written.ended else self._views()))

    def _open(self) -> None:
        """Mask all slots."""
        slots = 0 if self.written.ended else self.written.capacity - len(self.written.ids)
        self.ids, self.probabilities = [self.written.vocabulary.mask_id] * slots, [None] * slots

    def _views(self) -> Iterator[SlotView]:
        vocabulary = self.written.vocabulary
        for token, probability in zip(self.ids, self.probabilities, strict=True):
            if token == vocabulary.mask_id:
                yield SlotView("", "mask", 0.0)
            elif token == vocabulary.end_id:
                yield SlotView("", "end", probability or 0.0)
            else:
                yield SlotView(vocabulary.texts[token], "committed", probability or 0.0)
