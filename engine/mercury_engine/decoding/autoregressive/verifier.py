"""The verifier: what the model expects after accepted tokens and after drafts, read as if typed after the context.

Dimensions: V vocabulary.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, chain, pairwise

import numpy as np

from mercury_engine.kv_cache.cache import GapContext, first_tokens
from mercury_engine.kv_cache.read_ahead import ReadRows
from mercury_engine.models.arrays import Array, IdArray, joined, logsumexp
from mercury_engine.models.batching import ForwardResult, ForwardSteps
from mercury_engine.models.network import ForwardRequest, KeyValueSegment, Network, join
from mercury_engine.models.row_answers import RowAnswers, RowQuestion
from mercury_engine.text.common_prefix import common_prefix

SIDE_TOKENS = 256
"""Accepted tokens in one segment; each pass copies it, so a long text has several."""


class Verifier:
    """Reads tokens after a context and keeps the keys and values of those accepted.

    Those of a draft are kept until the next pass, so a draft token that was accepted is not read again.
    """

    def __init__(self, network: Network, context: GapContext, accepted: Sequence[int] = ()) -> None:
        self._network, self._adapter = network, context.adapter
        self._before = [*context.before]
        self._side: KeyValueSegment | None = None
        """Keys and values of the accepted tokens since the last segment of `_before`."""
        self._position = context.ends - context.left
        """Position of the first pending token."""
        self._pending = [*context.unread, *accepted]
        """Accepted tokens after those."""
        self._row: list[int] = []
        """Tokens of the last pass: those that were pending, then a draft."""
        self._fresh: KeyValueSegment | None = None
        """Their keys and values."""
        self._ahead, self._ids = context.ahead, context.stacked
        """Rows of earlier passes, and the tokens before the pending ones by which they are found."""

    @property
    def unread(self) -> int:
        """Number of accepted tokens that no pass has read."""
        return len(self._pending) - common_prefix(self._pending, self._row)

    def push(self, ids: Sequence[int]) -> None:
        """Add accepted tokens."""
        self._pending += ids

    def fork(self, ids: Sequence[int]) -> "Verifier":
        """A copy that goes on after these accepted tokens; this one stays as it is."""
        forked = copy(self)
        forked._pending = [*self._pending, *ids]
        return forked

    def verify(self, draft: list[int]) -> ForwardSteps[list[Array]]:
        """Log-probabilities [V] after the accepted tokens and after every token of a draft."""
        given = yield from self._read([draft], [len(draft) + 1], None)
        return [*given.logp_WV]

    def ask(
        self, accepted: list[list[int]], drafts: list[list[int]], question: RowQuestion
    ) -> ForwardSteps[list[RowAnswers]]:
        """For each hypothesis, what is asked about the tokens after its own accepted ones and its draft's."""
        runs = [[*own, *draft] for own, draft in zip(accepted, drafts, strict=True)]
        wanted = [len(draft) + 1 for draft in drafts]
        given = yield from self._read(runs, wanted, question)
        return [given.told.part(slice(*ends)) for ends in pairwise(accumulate(wanted, initial=0))]

    def score(self, rows: Sequence[list[int]], ends: Sequence[int] | IdArray = ()) -> ForwardSteps[list[float]]:
        """The log-probability of each row of tokens, in nats; with `ends`, that one of them follows counts too."""
        tokens = sorted({token for row in rows for token in row})
        column = {token: number for number, token in enumerate(tokens)}
        places, asked = sum(len(row) + 1 for row in rows), np.array([*tokens, *ends], np.int64)
        question = RowQuestion.of([None] * places, self._network.config.vocab_size, asked=asked)
        nats = []
        for row, told in zip(rows, (yield from self.ask([[] for _ in rows], [*rows], question)), strict=True):
            logits = told.asked_WA[np.arange(len(row)), [column[token] for token in row]]
            nats.append(float((logits - told.whole_W[: len(row)]).sum()))
            if len(ends):
                nats[-1] += logsumexp(told.asked_WA[-1, len(tokens) :] - told.whole_W[-1])
        return nats

    def _read(
        self, runs: list[list[int]], wanted: list[int], question: RowQuestion | None
    ) -> ForwardSteps[ForwardResult]:
        """A pass over the pending tokens and each run; `wanted`: rows at the end of each run that are asked about."""
        self._keep(any(len(run) < count for run, count in zip(runs, wanted, strict=True)))
        rows = [[*self._pending, *run] for run in runs]
        if len(rows) == 1:
            return (yield from self._read_one(rows[0], wanted[0], question))
        lengths = [*map(len, rows)]
        ends = accumulate(lengths)
        numbers = chain(*(range(end - count, end) for end, count in zip(ends, wanted, strict=True)))
        given: ForwardResult = yield self._forward(np.array([*chain(*rows)], np.int64), [*numbers], question, lengths)
        return given

    def _read_one(self, row: list[int], wanted: int, question: RowQuestion | None) -> ForwardSteps[ForwardResult]:
        """Read what no pass has read yet of one hypothesis's row."""
        ids, first = (*self._ids, *row), len(row) - wanted
        known = None if self._ahead is None else self._ahead.find(ids, len(self._ids))
        count = 0 if known is None else known.rows
        asked = [place - count for place in range(max(first, count), len(row))]
        forward = self._forward(np.array(row[count:], np.int64), asked, question)
        if known is not None:
            states = known.hidden_TC[first:] if first < count else None
            past, start = [*forward.past, known.side], self._position + count
            forward = replace(forward, past=past, start=start, known_WC=states)
        given: ForwardResult = yield forward
        self._row = row
        if known is not None and not forward.rows:
            self._fresh = known.side
            return given
        fresh, hidden_TC = self._network.rotated(given.block, forward.start), given.hidden_TC
        if known is not None:
            fresh, hidden_TC = join([known.side, fresh]), joined([known.hidden_TC, hidden_TC])
        self._fresh = fresh
        if self._ahead is not None:
            self._ahead.put(ReadRows(ids, fresh, hidden_TC))
        return given

    def _forward(
        self, ids_T: IdArray, wanted: list[int], question: RowQuestion | None, runs: Sequence[int] = ()
    ) -> ForwardRequest:
        past = self._before if self._side is None else [*self._before, self._side]
        return ForwardRequest(ids_T, past, self._position, runs, wanted, question, self._adapter)

    def _keep(self, but_last: bool) -> None:
        """Move the pending tokens that the last pass has read to the side; `but_last`: all but the last one."""
        kept = min(common_prefix(self._row, self._pending), len(self._pending) - but_last)
        if self._fresh is not None and (side := first_tokens(self._fresh, kept)) is not None:
            self._side = side if self._side is None else join([self._side, side])
            self._position += kept
            self._ids += tuple(self._pending[:kept])
            self._pending = self._pending[kept:]
            if self._side.keys.shape[3] >= SIDE_TOKENS:
                self._before, self._side = [*self._before, self._side], None
        self._row, self._fresh = [], None
