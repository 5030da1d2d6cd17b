"""The decoder of masked diffusion models, whatever their attention: it fills gaps, and most of them continue texts."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from mercury_engine.api import Control, Effort, FillRequest, GenerateRequest, Generation, Sampling
from mercury_engine.decoding.autoregressive.generating import most_tokens
from mercury_engine.decoding.context_reader import ContextReader
from mercury_engine.decoding.decoder import Decoder
from mercury_engine.decoding.diffusion.denoise import denoise
from mercury_engine.decoding.diffusion.layouts import FIRST_SLOTS, Around, Blocks, CausalContext, Layout, TwoSided
from mercury_engine.decoding.diffusion.length import LengthBias, searched
from mercury_engine.decoding.diffusion.rules import rule_of, threshold_of
from mercury_engine.decoding.diffusion.texts import Continuation, GapText
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis, hypotheses_of
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.errors import RequestError
from mercury_engine.kv_cache.cache import GapContext
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.models.row_answers import Choice, RowAnswers, Tokens


class DiffusionDecoder(Decoder):
    """Implements `Decoder`."""

    def __init__(self, layout: Layout, contexts: ContextReader, rules: GapRules, options: DiffusionOptions) -> None:
        self.layout, self.contexts, self.rules, self.options = layout, contexts, rules, options

    def write(self, request: FillRequest, control: Control) -> ForwardSteps[tuple[list[Hypothesis], GapContext | None]]:
        """See `Decoder.write`; a request of no steps only reads."""
        layout, cut, around = self.layout, self.contexts.cut(request), Around()
        hypotheses = hypotheses_of(request, self.rules, cut)
        texts = [GapText(each, layout.tokens, layout.ends, control) for each in hypotheses]
        slots = hypotheses[0].capacity - len(cut.known)
        with suppress(DeadlineReached):
            around = yield from layout.read(request, cut.read)
            if request.max_steps != 0:
                if isinstance(layout, TwoSided) and self.options.searches_length:
                    slots = yield from self._searched(layout, texts[0], around, request.effort, slots)
                rule = rule_of(layout.attention, layout.tokens, self.options, request.effort, slots)
                for text in texts:
                    text.length = len(cut.known) + slots
                yield from denoise(texts, layout, around, rule)
        return hypotheses, around.context

    def generate(self, request: GenerateRequest, prompt: list[int], control: Control) -> ForwardSteps[Generation]:
        """See `Decoder.generate`."""
        if isinstance(self.layout, CausalContext):
            return super().generate(request, prompt, control)
        return self._generated(self.layout, request, prompt or [self.rules.tokenizer.start_id], control)

    def forget(self) -> None:
        """See `Decoder.forget`."""
        if not isinstance(self.layout, CausalContext):
            self.layout.cache.clear()

    def _searched(
        self, layout: TwoSided, text: GapText, around: Around, effort: Effort, most: int
    ) -> ForwardSteps[int]:
        """The number of slots to begin with, unless the model inserts and deletes some itself.

        The text's first step needs no pass: the search was told of these masks.
        """
        first, found = min(FIRST_SLOTS, most), dict[int, RowAnswers]()
        if layout.tokens.expand is not None:
            return first
        rule = rule_of(layout.attention, layout.tokens, self.options, effort, most)

        def sure(lengths: Sequence[int]) -> ForwardSteps[list[float]]:
            found.update(zip(lengths, (yield from layout.told_of_masks(around, text, lengths, rule)), strict=True))
            return [float(np.exp(found[slots].logp_W).mean()) for slots in lengths]

        slots = yield from searched(sure, LengthBias(*self.options.length_bias or ()), first, most)
        around.told = found[slots]
        return slots

    def _generated(
        self, layout: TwoSided | Blocks, request: GenerateRequest, prompt: list[int], control: Control
    ) -> ForwardSteps[Generation]:
        """Raises PromptTooLong, and RequestError for options that need one token after the other."""
        most, asked, attention = most_tokens(layout.longest, request, prompt), request.sampling, layout.attention
        drawn = Sampling(asked.temperature, asked.top_p, asked.top_k, seed=asked.seed)
        if request.schema is not None or request.alternatives is not None or asked != drawn:
            raise RequestError(
                "a diffusion model takes temperature, top_p, top_k and seed only; leave out others, schemas and "
                "log-probabilities, or choose a causal model"
            )
        rule = threshold_of(attention, self.options, Choice(asked.temperature, asked.top_p, asked.top_k))
        never = [token for token in (attention.mask_id, attention.expand_id) if token is not None]
        tokens = Tokens(attention.mask_id)  # a text without a gap has no length to find
        text, around = Continuation(tokens, self.rules, request, control, most, never), Around()
        with suppress(DeadlineReached):
            around = yield from layout.continued(prompt)
            yield from denoise([text], layout, around, rule)
        return text.generation(len(prompt), around.known)
