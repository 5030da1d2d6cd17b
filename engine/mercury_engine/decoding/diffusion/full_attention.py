"""The decoder of masked diffusion models with full attention: prefix, slots and suffix in one text that all rows see.

A fill chooses a number of slots (`length`), then a rule reveals them in steps (`rules`). The first pass reads the
whole text; later ones compute the slots and what is new around them over the keys and values of the first
(`kv_cache.two_sided`), unless the options ask for exact steps.

Dimensions: S slots, V vocabulary.
"""

from collections.abc import Iterator
from contextlib import suppress

from mercury_engine.api import Control, FillRequest, GenerateRequest, Generation
from mercury_engine.decoding.context_reader import ContextReader, GapContext
from mercury_engine.decoding.decoder import Decoder
from mercury_engine.decoding.diffusion.gap import FIRST_SLOTS, MaskedGap, MaskedModel
from mercury_engine.decoding.diffusion.generating import generated_in_sight
from mercury_engine.decoding.diffusion.rules import Slots, Tokens
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.kv_cache.cache import CachedContext
from mercury_engine.kv_cache.two_sided import TwoSidedCache, TwoSides
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.models.network import Network
from mercury_engine.models.row_answers import RowQuestion
from mercury_engine.prompt.tokenizer import PrefixCut, Tokenizer

TOKENS_BEFORE, TOKENS_AFTER = 384, 128
"""Most tokens of the text on each side; a pass over 512 and 32 slots takes a 0.5B about a second on two cores."""

NEAREST_BEFORE, NEAREST_AFTER = 192, 64
"""What a user who has jumped elsewhere waits for; the rest is read in a pause."""

CUT_TOKENS = 32
"""The start of a long text moves by so many tokens at a time, for each move reads the text again."""


class FullAttentionDecoder(Decoder):
    """Implements `Decoder`."""

    def __init__(self, network: Network, contexts: ContextReader, rules: GapRules, options: DiffusionOptions) -> None:
        attention = network.config.masked_attention
        assert attention is not None
        self.contexts, self.rules, self.options = contexts, rules, options
        self.cache = TwoSidedCache(network, int(attention.shifted))
        self.tokens = Tokens(attention.mask_id, attention.delete_id, attention.expand_id)
        self.model = MaskedModel(self.cache, rules, options, self.tokens, network.config.vocab_size)
        self.longest = network.config.max_position_embeddings

    def write(self, request: FillRequest, control: Control) -> ForwardSteps[tuple[list[Hypothesis], GapContext | None]]:
        """See `Decoder.write`. A request of no steps reads the text again unless it was read as it is."""
        [written, *_] = self.rules.begin(request, PrefixCut([], [], ""))
        whole = self.sides(request)
        gap = MaskedGap(self.model, self._affordable(request, whole), written.capacity, written.multiline)
        with suppress(DeadlineReached):
            if request.max_steps != 0:
                yield from self._denoise(gap, request, control)
            elif not self.cache.is_exact(whole):
                masks = [self.tokens.mask] * FIRST_SLOTS
                yield from self.cache.read(whole, masks, RowQuestion.of([None] * FIRST_SLOTS, self.model.vocabulary))
        self._accept(gap, written)
        return [written], self._context(gap, whole)

    def generate(self, request: GenerateRequest, prompt: list[int], control: Control) -> ForwardSteps[Generation]:
        """See `Decoder.generate`."""
        return generated_in_sight(self.model, self.longest, request, prompt, control)

    def forget(self) -> None:
        """See `Decoder.forget`."""
        self.cache.clear()

    def _denoise(self, gap: MaskedGap, request: FillRequest, control: Control) -> ForwardSteps[None]:
        """Find the number of slots and reveal them.

        What breaks the syntax is masked again, once and if there are steps left, and then cut off.
        """
        gap.slots = Slots.masked((yield from gap.length()), self.tokens)
        gap.show(control)
        rule = self.model.rule(request.effort, gap.most)
        yield from gap.reveal(rule, control, request.max_steps)
        if (wrong := self._wrong(gap, control)) is not None and gap.steps != request.max_steps:
            gap.mask_from(wrong)
            gap.show(control)
            yield from gap.reveal(rule, control, request.max_steps)
            wrong = self._wrong(gap, control)
        if wrong is not None:
            gap.cut_at(wrong)
            gap.show(control)

    def _wrong(self, gap: MaskedGap, control: Control) -> int | None:
        """Where the text of the slots breaks the document's syntax; None if it does not."""
        texts = self.rules.vocabulary.texts
        text = "".join(texts[token] for token in gap.slots.ids)  # a character for each token, as the gap counts
        return control.check(text) if control.check is not None else None

    def _accept(self, gap: MaskedGap, written: Hypothesis) -> None:
        """Accept the revealed slots from the left up to the first mask."""
        written.steps = gap.steps
        for token, probability in zip(gap.slots.ids.tolist(), gap.slots.probability.tolist(), strict=True):
            if token == self.tokens.mask or written.ended:
                return
            written.accept(token, probability)
            written.ended |= self.rules.leaves_gap(written)
        written.ended |= len(gap.slots.ids) > 0

    def _context(self, gap: MaskedGap, whole: TwoSides) -> GapContext | None:
        """What was read; None where time was up before that. What is stale or left out counts as unread."""
        if not gap.passes:
            return None
        unread = 0 if self.cache.is_exact(whole) else max(self.cache.new(whole), 1)
        before = gap.sides.before
        return GapContext(CachedContext([], [], gap.tokens_read, unread), before, before, (gap.sides.after,))

    def _affordable(self, request: FillRequest, whole: TwoSides) -> TwoSides:
        """The text around a gap, or what is nearest of it where too much would have to be read first."""
        if request.unread_limit is None or self.options.exact or self.cache.new(whole) <= request.unread_limit:
            return whole
        return self.sides(request, NEAREST_BEFORE, NEAREST_AFTER)

    def sides(self, request: FillRequest, before: int = TOKENS_BEFORE, after: int = TOKENS_AFTER) -> TwoSides:
        """Whole blocks nearest to a gap, so that the ends of the text rarely move: about so many tokens."""
        tokenizer = self.rules.tokenizer
        behind = _nearest(map(tokenizer.block, request.suffix), after)
        cut = [token for block in behind for token in block][:after]
        return TwoSides(tuple(tokens_before(tokenizer, request, before)), tuple(cut))


def tokens_before(tokenizer: Tokenizer, request: FillRequest, most: int) -> list[int]:
    """About so many tokens before a gap: whole blocks, so that the first one rarely moves; at least one."""
    read = tokenizer.block(request.near)
    near = read[-(-max(0, len(read) - most) // CUT_TOKENS) * CUT_TOKENS :]
    ahead = _nearest(map(tokenizer.block, reversed(request.far)), most - len(near))
    return [token for block in reversed(ahead) for token in block] + [*near] or [tokenizer.start_id]


def _nearest(blocks: Iterator[tuple[int, ...]], budget: int) -> list[tuple[int, ...]]:
    """The first blocks, until one reaches beyond the budget."""
    found = list[tuple[int, ...]]()
    for block in blocks:
        if budget <= 0:
            break
        found.append(block)
        budget -= len(block)
    return found
