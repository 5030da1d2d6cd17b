"""Keys and values of the text on both sides of a gap, for models whose rows all see each other.

They come from a pass over the whole text with the gap masked, and are reused while the gap is denoised and the user
types. That is approximate, because every key depends on what stood in the gap then. Tokens that differ from that pass
are computed again with the gap's. The whole text is read again after `MOST_USES` passes or if more than `MOST_NEW`
tokens differ. The idea is Fast-dLLM's dual cache, arXiv 2505.22618.

Dimensions: L layers, B batch (1), H key heads, T tokens, D head width, S slots.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mercury_engine.models.batching import ForwardResult, ForwardSteps, Together
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment, Network
from mercury_engine.models.row_answers import RowAnswers, RowQuestion
from mercury_engine.text.common_prefix import common_prefix

MOST_NEW = 16
"""Most tokens beside the gap that every step computes again; that many cost about as much as the gap itself."""

MOST_USES = 128
"""Most passes that reuse the keys and values of one pass over the whole text: about a line of typing."""

MOST_PLACES = 16
"""Most positions for which rotated keys are kept; the search for the gap's length tries several."""

MOST_TEXTS = 8
"""Texts that are kept, of all documents and editors; 512 tokens of a 0.5B take 4 MB on a CPU."""


@dataclass(frozen=True, slots=True)
class TwoSides:
    """A text with a gap, in tokens."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def tokens(self) -> int:
        return len(self.before) + len(self.after)

    def around(self, slots: Sequence[int]) -> list[int]:
        """The whole text with these tokens in the gap."""
        return [*self.before, *slots, *self.after]


class StaleSides:
    """The part of an earlier pass that is reused: its first `before` tokens and its last `after` ones."""

    def __init__(self, network: Network, kept: KeyValueBlock, before: int, after: int) -> None:
        self.before, self.after, self._network = before, after, network
        self._kept = [_part(kept, 0, before), _part(kept, kept.tokens - after, kept.tokens)]
        self._placed: dict[tuple[int, int], KeyValueSegment] = {}

    def segments(self, sides: TwoSides, slots: int) -> list[KeyValueSegment]:
        """Their keys and values around a gap of this many slots; kept by position."""
        after_at = sides.tokens + slots - self.after
        return [self._at(side, start) for side, start in ((0, 0), (1, after_at)) if self._kept[side].tokens]

    def _at(self, side: int, start: int) -> KeyValueSegment:
        if (side, start) not in self._placed:
            if len(self._placed) >= MOST_PLACES:
                self._placed.clear()
            self._placed[side, start] = self._network.rotated(self._kept[side], start)
        return self._placed[side, start]


@dataclass(slots=True)
class _TextPass:
    """A pass over a whole text, and how often its keys and values were used."""

    sides: TwoSides
    kept: KeyValueBlock
    uses: int = 0
    stale: StaleSides | None = field(default=None)


@dataclass(frozen=True, slots=True)
class Overlap:
    """The tokens that a text shares with an earlier one, at its beginning and at its end."""

    earlier: _TextPass
    before: int
    after: int
    new: int
    """Number of tokens that the earlier text lacks; more than `MOST_NEW` if it is another place."""

    @classmethod
    def of(cls, earlier: _TextPass, sides: TwoSides) -> "Overlap":
        before = min(common_prefix(earlier.sides.before, sides.before), len(sides.before) - 1)
        after = common_prefix(reversed(earlier.sides.after), reversed(sides.after))
        return cls(earlier, before, after, MOST_NEW + 1 if before < 0 else sides.tokens - before - after)


class TwoSidedCache:
    """Reads texts around gaps; keeps the last passes over whole texts, found again by content."""

    def __init__(self, network: Network, shift: int, exact: bool = False) -> None:
        """`shift`: 1 where a row predicts the token of the next one. `exact`: every pass reads the whole text."""
        self._network, self._shift, self._exact = network, shift, exact
        self._passes: list[_TextPass] = []

    def empty(self) -> "TwoSidedCache":
        """An empty cache of this network, for a text that must not depend on what was read before."""
        return TwoSidedCache(self._network, self._shift, self._exact)

    def new(self, sides: TwoSides) -> int:
        """Number of tokens to read for a text: all of them where no earlier pass will do."""
        found = self._overlap(sides)
        return sides.tokens if found is None else found.new

    def _overlap(self, sides: TwoSides) -> Overlap | None:
        """The overlap with the pass that lacks the fewest of a text's tokens; None where the text must be read."""
        usable = [Overlap.of(each, sides) for each in self._passes if each.uses < MOST_USES and not self._exact]
        return min((each for each in usable if each.new <= MOST_NEW), key=lambda each: each.new, default=None)

    def is_exact(self, sides: TwoSides) -> bool:
        """Whether the last pass over this text was over exactly this one."""
        return any(each.sides == sides for each in self._passes)

    def read(self, sides: TwoSides, slots: Sequence[int], question: RowQuestion) -> ForwardSteps[RowAnswers]:
        """The answers about the last slots from a pass over the whole text, which is kept."""
        forward = ForwardRequest(
            np.array(sides.around(slots), np.int64),
            wanted=self._last(len(sides.before) + len(slots), question),
            question=replace(question, reveal=None),
            block=None,
        )
        result: ForwardResult = yield forward
        others = [each for each in self._passes if Overlap.of(each, sides).new > MOST_NEW]
        self._passes = [_TextPass(sides, self._network.kept(result.block)), *others[: MOST_TEXTS - 1]]
        return result.told

    def reread(self, sides: TwoSides, slots: Sequence[int], question: RowQuestion) -> ForwardSteps[RowAnswers]:
        """The answers about the last slots over the keys and values of an earlier pass; without one, `read`."""
        [told] = yield from self.reread_together(sides, [slots], [question])
        return told

    def reread_together(
        self, sides: TwoSides, slots: Sequence[Sequence[int]], questions: Sequence[RowQuestion]
    ) -> ForwardSteps[list[RowAnswers]]:
        """`reread` for several fillings of the gap, which share a pass."""
        if (found := self._overlap(sides)) is None:
            first = yield from self.read(sides, slots[0], questions[0])
            others = (yield from self.reread_together(sides, slots[1:], questions[1:])) if slots[1:] else []
            return [first, *others]
        stale = self._stale(found)
        forwards = [self._over(stale, sides, *each) for each in zip(slots, questions, strict=True)]
        results: list[ForwardResult]
        results = (yield Together(tuple(forwards))) if len(forwards) > 1 else [(yield forwards[0])]
        return [result.told for result in results]

    def clear(self) -> None:
        self._passes.clear()

    def _over(self, stale: StaleSides, sides: TwoSides, slots: Sequence[int], question: RowQuestion) -> ForwardRequest:
        before, after = sides.before[stale.before :], sides.after[: len(sides.after) - stale.after]
        return ForwardRequest(
            np.array([*before, *slots, *after], np.int64),
            stale.segments(sides, len(slots)),
            stale.before,
            wanted=self._last(len(before) + len(slots), question),
            question=question,
            block=None,
        )

    def _last(self, end: int, question: RowQuestion) -> range:
        """The rows of the last slots in front of a row, as many as are asked about."""
        return range(end - self._shift - question.rows, end - self._shift)

    def _stale(self, found: Overlap) -> StaleSides:
        """The part of a pass that a text reuses; this counts as a use of the pass."""
        earlier = found.earlier
        earlier.uses += 1
        self._passes = [earlier, *(each for each in self._passes if each is not earlier)][:MOST_TEXTS]
        if earlier.stale is None or (earlier.stale.before, earlier.stale.after) != (found.before, found.after):
            earlier.stale = StaleSides(self._network, earlier.kept, found.before, found.after)
        return earlier.stale


def _part(block: KeyValueBlock, start: int, end: int) -> KeyValueBlock:
    return KeyValueBlock(block.keys[:, :, :, start:end], block.values[:, :, :, start:end])
