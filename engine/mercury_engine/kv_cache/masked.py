"""Keys and values of texts for masked models whose rows see later ones; the last texts are kept.

`TwoSidedCache`: all rows see each other. Keys and values come from a pass over the whole text with the gap masked, and
are reused while the gap is denoised and the user types. That is approximate, because every key depends on what stood in
the gap then. Tokens that differ from that pass are computed again with the gap's. The whole text is read again after
`MOST_USES` passes or if more than `MOST_NEW` tokens differ. The idea is Fast-dLLM's dual cache, arXiv 2505.22618.

`BlockwiseCache`: the rows of a block see each other and all earlier blocks. So a block's keys depend on the text before
it and on itself alone, and what is cached is exact. Texts are found again by their first blocks.

Dimensions: W wanted rows, S slots.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercury_engine.kv_cache.cache import first_tokens
from mercury_engine.models.batching import ForwardResult, ForwardSteps, Together
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment, Network, join, part_of
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

MOST_SEGMENTS = 8
"""Most segments of a text before they are joined: a pass visits each of them, and joining copies them."""


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


@dataclass(frozen=True, slots=True)
class Overlap:
    """The tokens that a text shares with an earlier one, at its beginning and at its end."""

    earlier: "TextPass"
    before: int
    after: int
    new: int
    """Number of tokens that the earlier text lacks; more than `MOST_NEW` if it is another place."""


class TextPass:
    """A pass over a whole text, how often its keys and values were used, and the part of them that was used last."""

    def __init__(self, sides: TwoSides, kept: KeyValueBlock) -> None:
        self.sides, self._kept, self.uses = sides, kept, 0
        self._shared: tuple[int, int] | None = None
        self._parts: list[KeyValueBlock] = []
        """Its first `_shared[0]` tokens and its last `_shared[1]` ones."""
        self._placed: dict[tuple[int, int], KeyValueSegment] = {}
        """Keys and values of a part at a position, by the number of the part and the position."""

    def overlap(self, sides: TwoSides) -> Overlap:
        """What a text shares with it."""
        before = min(common_prefix(self.sides.before, sides.before), len(sides.before) - 1)
        after = common_prefix(reversed(self.sides.after), reversed(sides.after))
        return Overlap(self, before, after, MOST_NEW + 1 if before < 0 else sides.tokens - before - after)

    def segments(self, network: Network, found: Overlap, after_at: int) -> list[KeyValueSegment]:
        """Keys and values of the shared tokens, those after the gap from position `after_at` on; kept by position."""
        if (found.before, found.after) != self._shared:
            end, self._placed, self._shared = self._kept.tokens, {}, (found.before, found.after)
            self._parts = [part_of(self._kept, 0, found.before), part_of(self._kept, end - found.after, end)]
        places = (0, 0), (1, after_at)
        return [self._at(network, side, start) for side, start in places if self._parts[side].tokens]

    def _at(self, network: Network, side: int, start: int) -> KeyValueSegment:
        if (side, start) not in self._placed:
            if len(self._placed) >= MOST_PLACES:
                self._placed.clear()
            self._placed[side, start] = network.rotated(self._parts[side], start)
        return self._placed[side, start]


class TwoSidedCache:
    """Reads texts around gaps; keeps the last passes over whole texts, found again by content."""

    def __init__(self, network: Network, shift: int, exact: bool = False) -> None:
        """`shift`: 1 where a row predicts the token of the next one. `exact`: every pass reads the whole text."""
        self._network, self._shift, self._exact = network, shift, exact
        self._passes: list[TextPass] = []

    def empty(self) -> "TwoSidedCache":
        """An empty cache of this network, for a text that must not depend on what was read before."""
        return TwoSidedCache(self._network, self._shift, self._exact)

    def new(self, sides: TwoSides) -> int:
        """Number of tokens to read for a text: all of them where no earlier pass will do."""
        found = self._overlap(sides)
        return sides.tokens if found is None else found.new

    def _overlap(self, sides: TwoSides) -> Overlap | None:
        """The overlap with the pass that lacks the fewest of a text's tokens; None where the text must be read."""
        usable = [each.overlap(sides) for each in self._passes if each.uses < MOST_USES and not self._exact]
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
        others = [each for each in self._passes if each.overlap(sides).new > MOST_NEW]
        self._passes = [TextPass(sides, self._network.kept(result.block)), *others[: MOST_TEXTS - 1]]
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
        found.earlier.uses += 1
        self._passes = [found.earlier, *(each for each in self._passes if each is not found.earlier)]
        forwards = [self._over(found, sides, *each) for each in zip(slots, questions, strict=True)]
        results: list[ForwardResult]
        results = (yield Together(tuple(forwards))) if len(forwards) > 1 else [(yield forwards[0])]
        return [result.told for result in results]

    def clear(self) -> None:
        self._passes.clear()

    def _over(self, found: Overlap, sides: TwoSides, slots: Sequence[int], question: RowQuestion) -> ForwardRequest:
        """A pass over the slots and the new tokens beside them."""
        before, after = sides.before[found.before :], sides.after[: len(sides.after) - found.after]
        return ForwardRequest(
            np.array([*before, *slots, *after], np.int64),
            found.earlier.segments(self._network, found, sides.tokens + len(slots) - found.after),
            found.before,
            wanted=self._last(len(before) + len(slots), question),
            question=question,
            block=None,
        )

    def _last(self, end: int, question: RowQuestion) -> range:
        """The rows of the last slots in front of a row, as many as are asked about."""
        return range(end - self._shift - question.rows, end - self._shift)


@dataclass(frozen=True, slots=True)
class _Read:
    """Whole blocks that were read, from the start of a text."""

    ids: tuple[int, ...] = ()
    segments: tuple[KeyValueSegment, ...] = ()

    def first(self, tokens: int) -> "_Read":
        kept, left = list[KeyValueSegment](), tokens
        for segment in self.segments:
            if (part := first_tokens(segment, min(left, segment.keys.shape[3]))) is not None:
                kept.append(part)
                left -= part.keys.shape[3]
        return _Read(self.ids[:tokens], tuple(kept))


class BlockwiseCache:
    """Reads texts in blocks of a fixed number of tokens."""

    def __init__(self, network: Network, block: int, mask_id: int) -> None:
        self._network, self._block, self._mask = network, block, mask_id
        self._texts: list[_Read] = []

    def unread(self, ids: Sequence[int]) -> int:
        """Number of tokens in whole blocks of a text that are still to be read."""
        return len(ids) // self._block * self._block - self._known(ids)[1]

    def read(
        self, ids: Sequence[int], first: int, wanted: Sequence[int], question: RowQuestion | None = None
    ) -> ForwardSteps[RowAnswers]:
        """The answers about the wanted rows of a text, from one pass that computes all rows from `first` on.

        Unknown rows before that are read in the same pass. Blocks without masks are kept. `first` begins a block.
        """
        assert first % self._block == 0 and min(wanted, default=first) >= first
        text, known = self._known(ids[:first])
        before = text.first(known)
        if question is not None and known < first:  # the blocks in between are kept
            question = replace(question, reveal=None)
        result: ForwardResult = yield ForwardRequest(
            np.array(ids[known:], np.int64),
            before.segments,
            known,
            wanted=[row - known for row in wanted],
            question=question,
            block=self._block,
        )
        self._keep(text, before, ids, result.block)
        return result.told

    def clear(self) -> None:
        self._texts.clear()

    def _known(self, ids: Sequence[int]) -> tuple[_Read, int]:
        """The text that shares the most whole blocks with this one, and the number of their tokens."""
        texts = [(each, common_prefix(each.ids, ids) // self._block * self._block) for each in self._texts]
        return max(texts, key=lambda each: each[1], default=(_Read(), 0))

    def _keep(self, text: _Read, before: _Read, ids: Sequence[int], read: KeyValueBlock) -> None:
        """Keep the blocks without masks, in place of texts that they continue."""
        clean = ids.index(self._mask) if self._mask in ids else len(ids)
        new, kept = clean // self._block * self._block - len(before.ids), text
        if new > 0:
            segments = (*before.segments, self._network.rotated(part_of(read, 0, new), len(before.ids)))
            joined = (join([*segments]),) if len(segments) > MOST_SEGMENTS else segments
            kept = _Read((*before.ids, *ids[len(before.ids) : len(before.ids) + new]), joined)
        if kept.ids:
            others = (each for each in self._texts if each.ids != kept.ids[: len(each.ids)])
            self._texts = [kept, *others][:MOST_TEXTS]
