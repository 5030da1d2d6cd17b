"""The verifier: the reader's opinion of a canvas, from reading settled slots and drafts as if typed behind the context.

Dimensions: V vocabulary.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import accumulate, chain, islice

from mercury_engine.denoising.ngram_lookup import NgramLookup
from mercury_engine.kv_cache.cache import CachedContext, TokenIds, first_tokens
from mercury_engine.models.arrays import Array
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import (
    ForwardRequest,
    KeyValueSegment,
    Network,
    join,
    packed,
)
from mercury_engine.text.common_prefix import common_prefix


@dataclass(slots=True)
class CanvasContext:
    """What stands around canvases: the cached context, and the tokens that they follow."""

    context: CachedContext
    near: TokenIds
    """Tokens of the near prefix, with the markers of a gap format; the last one is the first row of every canvas."""
    text: TokenIds
    """Tokens of the near prefix alone, for n-gram lookup."""
    settled: int
    """Number of slots that are settled on every canvas; the verifier holds them."""
    ngrams: NgramLookup
    adapter: str = ""
    """The adapter with which canvases are read."""

    @property
    def last(self) -> int:
        """The token in front of the first slot."""
        return self.near[-1]

    @property
    def ends(self) -> int:
        """The position of that token, counted from the start of `near`."""
        return len(self.near) - 1


class Verifier:
    """Keys and values of the last prefix token and of the slots that are settled on every canvas.

    The keys and values of a draft are kept until the next push, so a draft token that is settled is not read again.
    """

    def __init__(
        self, reader: Network, before: Sequence[KeyValueSegment], last: int, ends: int, adapter: str = ""
    ) -> None:
        self.reader, self.before, self.pending, self.position = reader, list(before), [last], ends
        self._adapter = adapter
        self.side: KeyValueSegment | None = None
        self._fresh: KeyValueSegment | None = None
        """What the last pass read: pending tokens, then the draft."""
        self._draft: Sequence[int] = ()
        self._kept = 0
        """Number of tokens of `_fresh` that were pushed."""

    @classmethod
    def behind(cls, reader: Network, canvas_context: CanvasContext) -> "Verifier":
        """A verifier of canvases in this context."""
        it = canvas_context
        return cls(reader, it.context.before, it.last, it.ends, it.adapter)

    def fork(self, ids: Sequence[int]) -> "Verifier":
        """A verifier that goes on behind these first tokens of the last draft; this one stays as it is."""
        forked = copy(self)
        forked.pending = [*self.pending]
        forked.push(ids)
        forked._keep()
        return forked

    def push(self, ids: Sequence[int]) -> None:
        """Add settled slots; those that were not just read as a draft are read in the next pass."""
        known = common_prefix(ids, self._draft)
        self._kept += known
        self._draft = ()
        self.pending += ids[known:]

    def verify(self, settled: list[list[int]], drafts: list[list[int]]) -> ForwardSteps[list[list[Array]]]:
        """For every canvas, log-probabilities [V] behind its settled run and behind every token of its draft."""
        self._keep()
        past = self.before if self.side is None else [*self.before, self.side]
        rows = [[*self.pending, *run, *draft] for run, draft in zip(settled, drafts, strict=True)]
        ids_T, packing = packed(rows)
        alone = len(rows) == 1
        ends = list(accumulate(map(len, rows)))
        wanted = [range(end - len(draft) - 1, end) for end, draft in zip(ends, drafts, strict=True)]
        told = None if alone else packing, list(chain(*wanted)), self._adapter
        given = yield ForwardRequest(ids_T, past, self.position, *told)
        if alone:
            self._fresh, self._kept = self.reader.rotated(given.block, self.position), len(self.pending)
            self._draft = () if settled[0] else drafts[0]
            self.pending = []
        rows_W = iter(given.logp_WV)
        return [list(islice(rows_W, len(part))) for part in wanted]

    def _keep(self) -> None:
        """Join the pushed part of what the last pass read to the tokens read before."""
        if self._fresh is not None and (kept := first_tokens(self._fresh, self._kept)):
            self.side = kept if self.side is None else join([self.side, kept])
            self.position += self._kept
            self._fresh, self._kept = None, 0
