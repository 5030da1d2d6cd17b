"""The verifier: what the model expects after accepted tokens and after drafts, read as if typed after the context.

Dimensions: V vocabulary.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, chain, islice, pairwise

import numpy as np

from mercury_engine.decoding.context_reader import GapContext
from mercury_engine.kv_cache.cache import first_tokens
from mercury_engine.kv_cache.read_ahead import ReadAhead, ReadRows
from mercury_engine.models.arrays import Array, IdArray, joined, logsumexp
from mercury_engine.models.batching import ForwardResult, ForwardSteps
from mercury_engine.models.network import (
    ForwardRequest,
    KeyValueSegment,
    Network,
    Packing,
    join,
    packed,
)
from mercury_engine.models.row_answers import RowAnswers, RowQuestion
from mercury_engine.text.common_prefix import common_prefix

SIDE_TOKENS = 256
"""Accepted tokens in one segment; each pass copies it, so a long text has several."""


class Verifier:
    """Keys and values of the last prefix token and of the tokens that all hypotheses have accepted.

    Those of a draft are kept until the next push, so a draft token that is accepted is not read again.
    """

    def __init__(
        self, network: Network, before: Sequence[KeyValueSegment], unread: Sequence[int], start: int, adapter: str = ""
    ) -> None:
        """`unread`: tokens of the context that are still to be read, at least its last; the first is at `start`."""
        self.network, self.before, self.pending, self.position = network, list(before), [*unread], start
        self._adapter = adapter
        self._ahead: ReadAhead | None = None
        self._ids: tuple[int, ...] = ()
        """With `_ahead`, the tokens of the near stack and those that were kept after it."""
        self.side: KeyValueSegment | None = None
        self._fresh: KeyValueSegment | None = None
        """What the last pass read: pending tokens, then the draft."""
        self._row: list[int] = []
        """The tokens of `_fresh`."""
        self._draft: Sequence[int] = ()
        self._last = unread[-1]
        """The last token that was pushed."""
        self._kept = 0
        """Number of tokens of `_fresh` that were pushed."""

    @classmethod
    def after(cls, network: Network, context: GapContext) -> "Verifier":
        start = context.ends - context.cached.left
        made = cls(network, context.cached.before, context.unread, start, context.adapter)
        made._ahead, made._ids = context.cached.ahead, context.cached.near
        return made

    def fork(self, ids: Sequence[int]) -> "Verifier":
        """A verifier that goes on after these first tokens of the last draft; this one stays as it is."""
        forked = copy(self)
        forked.pending = [*self.pending]
        forked.push(ids)
        forked._keep()
        return forked

    def push(self, ids: Sequence[int]) -> None:
        """Add accepted tokens; those that were not just read as a draft are read in the next pass."""
        known = common_prefix(ids, self._draft)
        self._kept += known
        if ids:
            self._last = ids[-1]
        self._draft = ()
        self.pending += ids[known:]

    def verify(self, accepted: list[list[int]], drafts: list[list[int]]) -> ForwardSteps[list[list[Array]]]:
        """For each hypothesis, log-probabilities [V] after its own accepted tokens and every token of its draft."""
        given, lengths = yield from self._read(accepted, drafts, None)
        rows_W = iter(given.logp_WV)
        return [list(islice(rows_W, length)) for length in lengths]

    def ask(
        self, accepted: list[list[int]], drafts: list[list[int]], question: RowQuestion
    ) -> ForwardSteps[list[RowAnswers]]:
        """For each hypothesis, what is asked about the tokens after its own accepted ones and its draft's."""
        given, lengths = yield from self._read(accepted, drafts, question)
        return [given.told.part(slice(*ends)) for ends in pairwise(accumulate(lengths, initial=0))]

    def score(self, rows: Sequence[list[int]], ends: Sequence[int] | IdArray = ()) -> ForwardSteps[list[float]]:
        """The log-probability of each row of tokens, in nats; with `ends`, that one of them follows counts too."""
        if not rows:
            return []
        tokens = sorted({token for row in rows for token in row})
        column = {token: number for number, token in enumerate(tokens)}
        places, asked = sum(len(row) + 1 for row in rows), np.array([*tokens, *ends], np.int64)
        question = RowQuestion.of([None] * places, self.network.config.vocab_size, asked=asked)
        nats = []
        for row, told in zip(rows, (yield from self.ask([[] for _ in rows], [*rows], question)), strict=True):
            logits = told.asked_WA[np.arange(len(row)), [column[token] for token in row]]
            nats.append(float((logits - told.whole_W[: len(row)]).sum()))
            if len(ends):
                nats[-1] += logsumexp(told.asked_WA[-1, len(tokens) :] - told.whole_W[-1])
        return nats

    def _read(
        self, accepted: list[list[int]], drafts: list[list[int]], question: RowQuestion | None
    ) -> ForwardSteps[tuple[ForwardResult, list[int]]]:
        """What a pass returns, and the number of wanted rows of each hypothesis."""
        if not self.pending and not all(accepted):  # nothing pushed since the last pass
            self.pending, self._kept = [self._last], self._kept - 1
        self._keep()
        rows = [[*self.pending, *run, *draft] for run, draft in zip(accepted, drafts, strict=True)]
        lengths = [len(draft) + 1 for draft in drafts]
        if len(rows) > 1:
            ids_T, packing = packed(rows)
            ends = accumulate(map(len, rows))
            wanted = chain(*(range(end - length, end) for end, length in zip(ends, lengths, strict=True)))
            given: ForwardResult = yield self._forward(ids_T, [*wanted], question, packing)
            return given, lengths
        given = yield from self._read_one(rows[0], lengths[0], question)
        self._kept, self.pending = len(self.pending), []
        self._draft = () if accepted[0] else drafts[0]
        return given, lengths

    def _read_one(self, row: list[int], wanted: int, question: RowQuestion | None) -> ForwardSteps[ForwardResult]:
        """Read what no pass has read yet of one hypothesis's row; its last `wanted` tokens are asked about."""
        ids, first = (*self._ids, *row), len(row) - wanted
        known = None if self._ahead is None else self._ahead.find(ids, len(self._ids))
        count = 0 if known is None else known.rows
        asked = [place - count for place in range(max(first, count), len(row))]
        forward = self._forward(np.array(row[count:], np.int64), asked, question)
        if known is not None:
            states = known.hidden_TC[first:] if first < count else None
            past, start = [*forward.past, known.side], self.position + count
            forward = replace(forward, past=past, start=start, known_WC=states)
        given: ForwardResult = yield forward
        self._row = row
        if known is not None and not forward.rows:
            self._fresh = known.side
            return given
        fresh, hidden_TC = self.network.rotated(given.block, forward.start), given.hidden_TC
        if known is not None:
            fresh, hidden_TC = join([known.side, fresh]), joined([known.hidden_TC, hidden_TC])
        self._fresh = fresh
        if self._ahead is not None:
            self._ahead.put(ReadRows(ids, fresh, hidden_TC))
        return given

    def _forward(
        self, ids_T: IdArray, wanted: list[int], question: RowQuestion | None, packing: Packing | None = None
    ) -> ForwardRequest:
        past = self.before if self.side is None else [*self.before, self.side]
        return ForwardRequest(ids_T, past, self.position, packing, wanted, question, self._adapter)

    def _keep(self) -> None:
        """Join the pushed part of what the last pass read to the tokens read before."""
        if self._fresh is not None and (kept := first_tokens(self._fresh, self._kept)):
            self.side = kept if self.side is None else join([self.side, kept])
            self.position += self._kept
            if self._ahead is not None:
                self._ids += tuple(self._row[: self._kept])
            self._fresh, self._kept = None, 0
            if self.side.keys.shape[3] >= SIDE_TOKENS:
                self.before, self.side = [*self.before, self.side], None
