"""The decoder of masked diffusion models with full attention: prefix, slots and suffix in one text that all rows see.

A fill chooses a number of slots (`length`), then a sampler reveals them in steps (`samplers`). The first pass reads the
whole text; later ones compute the slots and what is new around them over the keys and values of the first
(`kv_cache.two_sided`), unless the options ask for exact steps.

Dimensions: S slots, R rows of a pass, W wanted rows, V vocabulary.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from mercury_engine.api import (
    Control,
    Effort,
    Fill,
    FillRequest,
    Rewrite,
    RewriteRequest,
    ScoreRequest,
    Scores,
    SlotView,
)
from mercury_engine.decoding.context_reader import ContextReader, GapContext
from mercury_engine.decoding.diffusion.length import CalibratedLength
from mercury_engine.decoding.diffusion.samplers import (
    ConfidenceThreshold,
    EntropyBound,
    ExpandAndDelete,
    LinearSchedule,
    PathPlanning,
    Sampler,
    Slots,
    Tokens,
)
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.decoding.results import fill_of
from mercury_engine.decoding.slot_masks import SlotLimits
from mercury_engine.errors import RequestError
from mercury_engine.kv_cache.cache import CachedContext
from mercury_engine.kv_cache.two_sided import TwoSidedCache, TwoSides
from mercury_engine.models.arrays import FloatArray, log_softmax, on_host
from mercury_engine.models.batching import DeadlineReached, ForwardResult, ForwardSteps
from mercury_engine.models.network import ForwardRequest, Network
from mercury_engine.prompt.tokenizer import PrefixCut

TOKENS_BEFORE, TOKENS_AFTER = 384, 128
"""Most tokens of the text on each side; a pass over 512 and 32 slots takes a 0.5B about a second on two cores."""

STEPS: dict[Effort, int] = {"instant": 4, "low": 8, "medium": 16, "high": 64}
"""Steps of the samplers that have a fixed number."""

FIRST_SLOTS = 8
"""Slots that the search for the length begins with, and DreamOn's first number of masks."""

SEED = 0
"""Of the samplers that draw tokens: the same request has the same answer."""


class FullAttentionDecoder:
    """Implements `Decoder`. One request's passes read and write its own cache, which is the last request's at first."""

    edit_format: str | None = None
    """None: regions are not rewritten."""
    backend = ""

    def __init__(self, network: Network, contexts: ContextReader, rules: GapRules, options: DiffusionOptions) -> None:
        attention = network.config.full_attention
        assert attention is not None
        self.contexts, self.rules, self._options = contexts, rules, options
        self._cache = TwoSidedCache(network)
        self.tokens = Tokens(attention.mask_id, attention.delete_id, attention.expand_id)
        self._shift, self.finds_length = int(attention.shifted), attention.expand_id is not None

    def write(self, request: FillRequest, control: Control) -> ForwardSteps[tuple[list[Hypothesis], GapContext | None]]:
        """See `Decoder.write`."""
        [written, *_] = self.rules.begin(request, PrefixCut([], [], ""))
        gap = _Gap(self, request, written)
        with suppress(DeadlineReached):
            yield from gap.denoise(control)
        gap.accept()
        return [written], gap.context()

    def fill(self, request: FillRequest, control: Control) -> ForwardSteps[Fill]:
        """See `Decoder.fill`."""
        return fill_of(request, *(yield from self.write(request, control)), self.rules)

    def score(self, request: ScoreRequest) -> ForwardSteps[Scores]:
        """The sum of each token's log-probability with all tokens of the text masked: one pass a text."""
        sides, nats = self.sides(request.gap), list[float]()
        for text in request.texts:
            nats.append(0.0)
            if ids := self.rules.tokenizer.encode(text):
                logp_SV = yield from self.read(sides, [self.tokens.mask] * len(ids))
                nats[-1] = float(logp_SV[np.arange(len(ids)), ids].sum())
        return Scores(tuple(nats), elapsed=0.0)

    def rewrite(self, request: RewriteRequest) -> ForwardSteps[Rewrite]:
        """Raises RequestError."""
        raise RequestError("a masked diffusion model does not rewrite regions here; choose a causal one")

    def forget(self) -> None:
        """See `Decoder.forget`."""
        self._cache.clear()

    def sides(self, request: FillRequest) -> TwoSides:
        """The text around a gap: whole blocks nearest to it, so that the ends of the text rarely move."""
        encode = self.rules.tokenizer.block
        near = encode(request.near)[-TOKENS_BEFORE:]
        before = _nearest(map(encode, reversed(request.far)), TOKENS_BEFORE - len(near))
        after = _nearest(map(encode, request.suffix), TOKENS_AFTER)
        cut = [token for block in after for token in block][:TOKENS_AFTER]
        start = (self.rules.tokenizer.start_id,) if not before and not near else ()
        return TwoSides((*start, *(token for block in reversed(before) for token in block), *near), tuple(cut))

    def read(self, sides: TwoSides, slots: Sequence[int]) -> ForwardSteps[FloatArray]:
        """Log-probabilities [S,V] of the slots, from a pass over the whole text, which is kept."""
        first = len(sides.before) - self._shift
        forward = ForwardRequest(
            np.array(sides.around(slots), np.int64), wanted=range(first, first + len(slots)), bidirectional=True
        )
        result: ForwardResult = yield forward
        self._cache.put(sides, result.block)
        return on_host(result.logp_WV)

    def reread(self, sides: TwoSides, slots: Sequence[int]) -> ForwardSteps[FloatArray]:
        """The same with what is known of the text, and all of it read where too little is."""
        stale = None if self._options.exact else self._cache.find(sides)
        if stale is None:
            return (yield from self.read(sides, slots))
        rows = [*sides.before[stale.before :], *slots, *sides.after[: len(sides.after) - stale.after]]
        first = len(sides.before) - stale.before - self._shift
        result: ForwardResult = yield ForwardRequest(
            np.array(rows, np.int64),
            stale.segments(sides, len(slots)),
            stale.before,
            wanted=range(first, first + len(slots)),
            bidirectional=True,
        )
        return on_host(result.logp_WV)

    def sampler(self, request: FillRequest, slots: int) -> Sampler:
        """The sampler of a fill."""
        options, steps = self._options, min(slots, STEPS[request.effort])
        if self.finds_length:
            return ExpandAndDelete(most=slots)
        if options.schedule is not None:
            return PathPlanning(steps) if options.schedule == "path planning" else LinearSchedule(steps)
        return EntropyBound(options.bound) if options.threshold is None else ConfidenceThreshold(options.threshold)


class _Gap:
    """One fill under way."""

    def __init__(self, decoder: FullAttentionDecoder, request: FillRequest, written: Hypothesis) -> None:
        self._decoder, self._request, self._written = decoder, request, written
        self._sides, self._tokens = decoder.sides(request), decoder.tokens
        self._slots = Slots.masked(0, self._tokens)
        self._passes = 0

    def denoise(self, control: Control) -> ForwardSteps[None]:
        """Find the number of slots and reveal them; what breaks the document's syntax is masked again once."""
        self._slots = Slots.masked((yield from self._length()), self._tokens)
        self._show(control)
        yield from self._reveal(control)
        if (wrong := self._first_wrong(control)) is not None:
            self._slots = self._slots.masked_again(np.arange(wrong, len(self._slots.ids)), self._tokens)
            yield from self._reveal(control)

    def accept(self) -> None:
        """Accept the revealed slots from the left up to the first mask."""
        written = self._written
        for token, probability in zip(self._slots.ids.tolist(), self._slots.probability.tolist(), strict=True):
            if token == self._tokens.mask or written.ended:
                return
            written.accept(token, probability)
            written.ended |= self._decoder.rules.leaves_gap(written)
        written.ended |= len(self._slots.ids) > 0

    def context(self) -> GapContext | None:
        """What was read; None where time was up before that."""
        if not self._passes:
            return None
        sides = self._sides
        return GapContext(CachedContext([], [], len(sides.before) + len(sides.after)), sides.before, sides.before)

    def _length(self) -> ForwardSteps[int]:
        """The number of slots to begin with."""
        most = self._written.capacity
        first = min(FIRST_SLOTS, most)
        if self._decoder.finds_length:
            return first
        search = CalibratedLength(first=first, most=most).search()
        try:
            slots = next(search)
            while True:
                logp_SV = yield from self._pass(Slots.masked(slots, self._tokens))
                slots = search.send(float(np.exp(logp_SV.max(-1)).mean()))
        except StopIteration as end:
            return int(end.value)

    def _reveal(self, control: Control) -> ForwardSteps[None]:
        written, request = self._written, self._request
        sampler, random = self._decoder.sampler(request, written.capacity), np.random.default_rng(SEED)
        number = 0
        while self._slots.is_mask(self._tokens).any():
            logp_SV = yield from self._pass(self._slots)
            written.steps += 1
            if written.steps == request.max_steps or number >= MOST_STEPS:
                masked_S = self._slots.is_mask(self._tokens)
                self._slots = self._slots.revealed(masked_S, logp_SV.argmax(-1), logp_SV)
            else:
                self._slots = sampler.step(self._slots, logp_SV, self._tokens, number, random)
            number += 1
            self._show(control)

    def _pass(self, slots: Slots) -> ForwardSteps[FloatArray]:
        """Log-probabilities [S,V] of the tokens that a slot may hold."""
        decoder, tokens = self._decoder, self._tokens
        logp_SV = yield from decoder.reread(self._sides, slots.ids.tolist())
        self._passes += 1
        hidden_V = decoder.rules.masks.hidden_tokens(SlotLimits("", self._written.multiline))[: logp_SV.shape[1]].copy()
        for token in (tokens.end, tokens.expand) if decoder.finds_length else ():
            hidden_V[token] = False
        return log_softmax(np.where(hidden_V, -math.inf, logp_SV))

    def _first_wrong(self, control: Control) -> int | None:
        """The slot where the revealed text breaks the document's syntax; None if it does not, or nobody can say."""
        texts = self._written.vocabulary.texts
        shown = [texts[token] for token in self._slots.ids]
        wrong = control.check("".join(shown)) if control.check is not None else None
        if wrong is None:
            return None
        ends = np.cumsum([len(text) for text in shown])
        return int(np.searchsorted(ends, wrong, side="right"))

    def _show(self, control: Control) -> None:
        if control.on_step is not None:
            control.on_step(tuple(self._views()))

    def _views(self) -> Iterator[SlotView]:
        texts = self._written.vocabulary.texts
        for token, probability in zip(self._slots.ids.tolist(), self._slots.probability.tolist(), strict=True):
            if token == self._tokens.mask:
                yield SlotView("", "mask", 0.0)
            else:
                yield SlotView(texts[token], "committed", probability)


MOST_STEPS = 256
"""After so many steps a fill takes what is likeliest for every mask that is left; DreamOn's bound."""


def _nearest(blocks: Iterator[tuple[int, ...]], budget: int) -> list[tuple[int, ...]]:
    """The first blocks until one no longer fits whole."""
    found = list[tuple[int, ...]]()
    for block in blocks:
        found.append(block)
        if (budget := budget - len(block)) <= 0:
            break
    return found
