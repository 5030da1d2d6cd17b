"""Generation by a model that decodes in blocks: a text without a gap is continued block after block."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from mercury_engine.api import Control, GenerateRequest, Generation, Sampling
from mercury_engine.decoding.autoregressive.streamed_text import StreamedText
from mercury_engine.decoding.diffusion.blocks import Blocks
from mercury_engine.decoding.diffusion.samplers import Choice, ConfidenceThreshold, Slots
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.errors import PromptTooLong, RequestError
from mercury_engine.models.batching import DeadlineReached, ForwardSteps

PREFILLED_AT_ONCE = 512
"""Most tokens of a prompt that one pass reads; the mask of a pass grows with their square."""


def generated(
    blocks: Blocks, rules: GapRules, request: GenerateRequest, prompt: list[int], control: Control
) -> ForwardSteps[Generation]:
    """See `Decoder.generate`."""
    sampler = _sampler(blocks, request)
    prompt = prompt or [rules.tokenizer.start_id]
    longest = blocks.longest
    if len(prompt) >= longest:
        raise PromptTooLong(
            f"the prompt has {len(prompt):,} tokens, the model reads at most {longest - 1:,}; shorten it"
        )
    room = longest - len(prompt)
    most = room if request.max_tokens is None else min(room, request.max_tokens)
    writing = _Writing(blocks, rules, request, prompt, control)
    unread = blocks.cache.unread(prompt)
    with suppress(DeadlineReached):
        for end in [*range(PREFILLED_AT_ONCE, len(prompt), PREFILLED_AT_ONCE), len(prompt)]:
            yield from blocks.read(prompt[:end])
        yield from writing.run(sampler, most)
    writing.streamed.finish()
    return Generation(
        writing.streamed.text,
        "stop" if writing.ended else "length",
        prompt_tokens=len(prompt),
        cached_tokens=len(prompt) // blocks.block * blocks.block - unread,
        tokens=len(writing.ids) - len(prompt),
        steps=writing.steps,
        elapsed=0.0,
    )


def _sampler(blocks: Blocks, request: GenerateRequest) -> ConfidenceThreshold:
    """How tokens are drawn and revealed. Raises RequestError for what needs one token after the other."""
    asked = request.sampling
    drawn = Sampling(asked.temperature, asked.top_p, asked.top_k, seed=asked.seed)
    if request.schema is not None or request.alternatives is not None or asked != drawn:
        raise RequestError(
            "a model that decodes in blocks takes temperature, top_p, top_k and seed only; leave out others, schemas "
            "and log-probabilities, or choose a causal model"
        )
    choice = Choice(asked.temperature, asked.top_p, asked.top_k)
    return ConfidenceThreshold(blocks.sampler.threshold, choice)


class _Writing:
    """One text while it is written."""

    def __init__(
        self, blocks: Blocks, rules: GapRules, request: GenerateRequest, prompt: Sequence[int], control: Control
    ) -> None:
        self.ids, self.steps, self.ended = [*prompt], 0, False
        self.streamed = StreamedText(rules.tokenizer, request.stop, control.on_text)
        self._blocks, self._random = blocks, np.random.default_rng(request.sampling.seed)
        self._ends = frozenset(rules.stopping.ends_text.tolist())

    def run(self, sampler: ConfidenceThreshold, most: int) -> ForwardSteps[None]:
        """Write up to `most` tokens."""
        blocks, last = self._blocks, len(self.ids) + most
        slots = blocks.opened(self.ids)
        while not self.ended and len(self.ids) < last:
            logp_SV = (yield from blocks.expected(self.ids, slots.ids.tolist())).copy()
            logp_SV[:, blocks.tokens.mask] = -np.inf
            slots = blocks.revealed(sampler, slots, logp_SV, len(self.ids), self.steps, self._random)
            self.steps += 1
            while len(slots.ids) and slots.ids[0] != blocks.tokens.mask and not self.ended and len(self.ids) < last:
                self._accept(int(slots.ids[0]))
                slots = Slots(slots.ids[1:], slots.probability[1:])
            slots = slots if len(slots.ids) else blocks.opened(self.ids)

    def _accept(self, token: int) -> None:
        self.ids.append(token)
        self.ended = token in self._ends or self.streamed.add(token)
