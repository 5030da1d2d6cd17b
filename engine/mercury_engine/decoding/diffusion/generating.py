"""Generation by diffusion: a text without a gap is continued block after block, each denoised in steps.

Dimensions: S slots, V vocabulary.
"""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from mercury_engine.api import Control, GenerateRequest, Generation, Sampling
from mercury_engine.decoding.autoregressive.generating import PREFILLED_AT_ONCE, most_tokens
from mercury_engine.decoding.autoregressive.streamed_text import StreamedText
from mercury_engine.decoding.diffusion.blocks import Blocks
from mercury_engine.decoding.diffusion.gap import MaskedModel
from mercury_engine.decoding.diffusion.masked_end import MaskedEnd
from mercury_engine.decoding.diffusion.rules import Choice, ConfidenceThreshold, Slots
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.errors import RequestError
from mercury_engine.models.batching import DeadlineReached, ForwardSteps

LONGEST_SEEN = 4096
"""Most tokens of a text that all see each other: one pass reads them."""


def generated_in_blocks(
    blocks: Blocks, rules: GapRules, request: GenerateRequest, prompt: list[int], control: Control
) -> ForwardSteps[Generation]:
    """See `Decoder.generate`; a block sees those before it, so that the prompt is read once."""
    prompt = prompt or [rules.tokenizer.start_id]
    most = most_tokens(blocks.longest, request, prompt)
    writing = _Writing(blocks, rules, request, prompt, control)
    unread = blocks.cache.unread(prompt)
    with suppress(DeadlineReached):
        for end in [*range(PREFILLED_AT_ONCE, len(prompt), PREFILLED_AT_ONCE), len(prompt)]:
            yield from blocks.read(prompt[:end])
        yield from writing.run(most)
    return writing.generation(len(prompt) // blocks.block * blocks.block - unread)


def generated_in_sight(
    model: MaskedModel, longest: int, request: GenerateRequest, prompt: list[int], control: Control
) -> ForwardSteps[Generation]:
    """See `Decoder.generate`; all tokens see each other, so that the prompt is read again for each block."""
    prompt = prompt or [model.rules.tokenizer.start_id]
    most = most_tokens(min(longest, LONGEST_SEEN), request, prompt)
    end = MaskedEnd(model, len(prompt), len(prompt) + most)
    writing = _Writing(end, model.rules, request, prompt, control)
    with suppress(DeadlineReached):
        yield from writing.run(most)
    return writing.generation(0)


def _rule(rule: ConfidenceThreshold, request: GenerateRequest) -> ConfidenceThreshold:
    """How tokens are drawn and revealed. Raises RequestError for what needs one token after the other."""
    asked = request.sampling
    drawn = Sampling(asked.temperature, asked.top_p, asked.top_k, seed=asked.seed)
    if request.schema is not None or request.alternatives is not None or asked != drawn:
        raise RequestError(
            "a diffusion model takes temperature, top_p, top_k and seed only; leave out others, schemas and "
            "log-probabilities, or choose a causal model"
        )
    return ConfidenceThreshold(rule.threshold, Choice(asked.temperature, asked.top_p, asked.top_k))


class _Writing:
    """One text while it is written."""

    def __init__(
        self,
        end: Blocks | MaskedEnd,
        rules: GapRules,
        request: GenerateRequest,
        prompt: Sequence[int],
        control: Control,
    ) -> None:
        """Raises RequestError."""
        self._ids, self._steps, self._ended = [*prompt], 0, False
        self._streamed = StreamedText(rules.tokenizer, request.stop, control)
        self._rule, self._prompt_tokens = _rule(end.rule, request), len(prompt)
        self._end, self._random = end, np.random.default_rng(request.sampling.seed)
        self._ends = frozenset(rules.stopping.ends_text.tolist())
        self._hidden_V = np.zeros(len(rules.vocabulary.texts), np.bool_)
        self._hidden_V[[token for token in (end.tokens.mask, end.tokens.expand) if token is not None]] = True

    def run(self, most: int) -> ForwardSteps[None]:
        """Write up to `most` tokens."""
        end, last = self._end, len(self._ids) + most
        slots = end.opened(self._ids)
        while not self._ended and len(self._ids) < last:
            hidden = [self._hidden_V] * len(slots.ids)
            told = yield from end.told(self._ids, slots.ids.tolist(), hidden, self._rule.choice.draws)
            slots = end.revealed(self._rule, slots, told, len(self._ids), self._steps, self._random)
            self._steps += 1
            while len(slots.ids) and slots.ids[0] != end.tokens.mask and not self._ended and len(self._ids) < last:
                self._accept(int(slots.ids[0]))
                slots = Slots(slots.ids[1:], slots.probability[1:])
            slots = slots if len(slots.ids) else end.opened(self._ids)

    def generation(self, cached: int) -> Generation:
        """The text so far, as the answer."""
        self._streamed.finish()
        return Generation(
            self._streamed.text,
            "stop" if self._ended else "length",
            prompt_tokens=self._prompt_tokens,
            cached_tokens=cached,
            tokens=len(self._ids) - self._prompt_tokens,
            steps=self._steps,
            elapsed=0.0,
        )

    def _accept(self, token: int) -> None:
        self._ids.append(token)
        self._ended = token in self._ends or self._streamed.add(token)
