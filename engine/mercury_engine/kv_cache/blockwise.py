"""Keys and values of text that is read in blocks: the rows of a block see each other and all earlier blocks.

So a block's keys depend on the text before it and on itself alone, and what is cached is exact. The last texts are
kept, found again by their first blocks.

Dimensions: W wanted rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercury_engine.kv_cache.cache import first_tokens
from mercury_engine.models.batching import ForwardResult, ForwardSteps
from mercury_engine.models.network import ForwardRequest, KeyValueBlock, KeyValueSegment, Network, join, part_of
from mercury_engine.models.row_answers import RowAnswers, RowQuestion
from mercury_engine.text.common_prefix import common_prefix

MOST_TEXTS = 8
"""Texts that are kept, of all documents and editors; 512 tokens of a 0.5B take 4 MB on a CPU."""

MOST_SEGMENTS = 8
"""Most segments of a text before they are joined: a pass visits each of them, and joining copies them."""


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
