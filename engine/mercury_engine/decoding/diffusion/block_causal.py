"""The decoder of masked diffusion models that write in blocks: a block is denoised while all before it stays as it is.

The rows of a block see each other and every earlier block: the text after the gap is not seen, and the cache is exact
(`kv_cache.blockwise`). Blocks are counted from the start of the text that is read; the first one denoised begins with
the tokens that the last whole block before the cursor leaves over.

Dimensions: V vocabulary.
"""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from mercury_engine.api import Control, FillRequest, GenerateRequest, Generation
from mercury_engine.decoding.context_reader import ContextReader, GapContext
from mercury_engine.decoding.decoder import Decoder
from mercury_engine.decoding.diffusion.blocks import Blocks
from mercury_engine.decoding.diffusion.full_attention import NEAREST_BEFORE, TOKENS_BEFORE, tokens_before
from mercury_engine.decoding.diffusion.gap import SEED
from mercury_engine.decoding.diffusion.generating import generated_in_blocks
from mercury_engine.decoding.diffusion.rules import Slots
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.decoding.slot_masks import SlotLimits, next_limits
from mercury_engine.kv_cache.cache import CachedContext
from mercury_engine.models.arrays import MaskArray
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.models.network import Network
from mercury_engine.prompt.tokenizer import PrefixCut


class BlockCausalDecoder(Decoder):
    """Implements `Decoder`."""

    def __init__(self, network: Network, contexts: ContextReader, rules: GapRules, options: DiffusionOptions) -> None:
        self.contexts, self.rules = contexts, rules
        self.blocks = Blocks(network, options)

    def write(self, request: FillRequest, control: Control) -> ForwardSteps[tuple[list[Hypothesis], GapContext | None]]:
        """See `Decoder.write`."""
        [written, *_] = self.rules.begin(request, PrefixCut([], [], ""))
        whole = tokens_before(self.rules.tokenizer, request, TOKENS_BEFORE)
        text, limit = whole, request.unread_limit
        if limit is not None and self.blocks.cache.unread(whole) > limit:
            text = tokens_before(self.rules.tokenizer, request, NEAREST_BEFORE)
        unread, context = self.blocks.cache.unread(text), None
        with suppress(DeadlineReached):
            if request.max_steps == 0:
                yield from self.blocks.read(text)
            else:
                yield from _Filling(self.blocks, self.rules, text, written).run(request, control)
        if not self.blocks.cache.unread(text):
            context = GapContext(
                CachedContext([], [], unread, self.blocks.cache.unread(whole)), tuple(text), tuple(text)
            )
        return [written], context

    def generate(self, request: GenerateRequest, prompt: list[int], control: Control) -> ForwardSteps[Generation]:
        """See `Decoder.generate`."""
        return generated_in_blocks(self.blocks, self.rules, request, prompt, control)

    def forget(self) -> None:
        """See `Decoder.forget`."""
        self.blocks.cache.clear()


class _Filling:
    """A fill under way: the text before it, its accepted tokens, and the slots after them in their block."""

    def __init__(self, blocks: Blocks, rules: GapRules, text: Sequence[int], written: Hypothesis) -> None:
        self._blocks, self._rules, self._text, self._written = blocks, rules, text, written
        self._tokens = blocks.tokens
        self._random = np.random.default_rng(SEED)
        self._open()

    def run(self, request: FillRequest, control: Control) -> ForwardSteps[None]:
        """Denoise block after block until the fill has ended, or going on makes no sense."""
        self._show(control)
        while self._rules.is_open(request, self._written):
            yield from self._step(self._written.steps + 1 == request.max_steps)
            self._written.steps += 1
            self._accept()
            self._show(control)
            if self._written.ended and self._rules.repaired(control, self._written):
                self._open()

    @property
    def _ids(self) -> list[int]:
        return [*self._text, *self._written.ids]

    def _open(self) -> None:
        """Mask the block after the accepted tokens to its end."""
        self._slots = self._blocks.opened(self._ids)

    def _step(self, is_last: bool) -> ForwardSteps[None]:
        """One pass, and what it reveals; the last one reveals the whole block."""
        slots, blocks = self._slots, self._blocks
        told = yield from blocks.told(self._ids, slots.ids.tolist(), self._hidden(), draws=False)
        if is_last:
            self._slots = blocks.all_revealed(slots, told)
        else:
            place, step = len(self._ids), self._written.steps
            self._slots = blocks.revealed(blocks.rule, slots, told, place, step, self._random)

    def _hidden(self) -> list[MaskArray]:
        """The tokens that a slot may not get; it may get those that end the fill."""
        written, stop = self._written, self._rules.stop_tokens(self._written)
        first, other = (
            self._rules.masks.hidden_tokens(limits).copy()
            for limits in (next_limits(written), SlotLimits("", written.multiline))
        )
        for hidden_V in (first, other):
            if stop is not None:
                hidden_V[stop.tokens] = False
            hidden_V[self._tokens.mask] = True
        return [first] + [other] * (len(self._slots.ids) - 1)

    def _accept(self) -> None:
        """Accept revealed slots from the left, and mask the next block behind a full one."""
        written = self._written
        while len(self._slots.ids) and not written.ended and len(written.ids) < written.capacity:
            token, probability = int(self._slots.ids[0]), float(self._slots.probability[0])
            if token == self._tokens.mask:
                return
            stop = self._rules.stop_tokens(written)
            if token in self._rules.stopping.ends_text or (stop is not None and token in stop.tokens):
                written.accept(written.vocabulary.end_id, probability)
            else:
                written.accept(token, probability)
                written.ended |= self._rules.leaves_gap(written)
            self._slots = Slots(self._slots.ids[1:], self._slots.probability[1:])
        if not len(self._slots.ids):
            self._open()

    def _show(self, control: Control) -> None:
        if control.on_step is not None:
            room = 0 if self._written.ended else self._written.capacity - len(self._written.ids)
            shown = self._slots.views(self._written.vocabulary.texts, self._tokens)[:room]
            control.on_step(self._written.view(shown))
