"""What fills and generated texts do with the blocks of a model that denoises one after the other.

Dimensions: S slots, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np

from mercury_engine.decoding.diffusion.samplers import ConfidenceThreshold, Slots, Tokens
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.kv_cache.blockwise import BlockwiseCache
from mercury_engine.models.arrays import FloatArray
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network


class Blocks:
    """A model's blocks: what it expects in their slots, and which of those a step reveals."""

    def __init__(self, network: Network, options: DiffusionOptions) -> None:
        attention = network.config.masked_attention
        assert attention is not None and attention.block is not None
        self.attention, self.block = attention, attention.block
        self.cache = BlockwiseCache(network, attention.block, attention.mask_id)
        self.tokens, self.longest = Tokens(attention.mask_id), network.config.max_position_embeddings
        self.sampler = ConfidenceThreshold(attention.threshold if options.threshold is None else options.threshold)

    def read(self, ids: Sequence[int]) -> ForwardSteps[None]:
        """Read the whole blocks of a text."""
        if self.cache.unread(ids):
            whole = list(ids[: len(ids) // self.block * self.block])
            yield from self.cache.read(whole, len(whole), [])

    def expected(self, ids: Sequence[int], slots: Sequence[int]) -> ForwardSteps[FloatArray]:
        """Log-probabilities [S,V] of the slots up to the end of the block after `ids`, of which the first are given.

        Where a row predicts the token of the next one, a block's first token comes from the last row before the block:
        then there is one row of results.
        """
        place = len(ids) % self.block
        start = len(ids) - place
        if self.attention.shifted and not place and start:
            return (yield from self.cache.read(list(ids), start - self.block, [start - 1]))
        rows = [*ids, *slots, *[self.attention.mask_id] * (self.block - place - len(slots))]
        wanted = [max(start, row - self.attention.shifted) for row in range(len(ids), len(rows))]
        return (yield from self.cache.read(rows, start, wanted))

    def opened(self, ids: Sequence[int]) -> Slots:
        """The slots after a text, up to the end of their block: masks."""
        return Slots.masked(self.block - len(ids) % self.block, self.tokens)

    def revealed(
        self,
        sampler: ConfidenceThreshold,
        slots: Slots,
        logp_SV: FloatArray,
        place: int,
        step: int,
        random: np.random.Generator,
    ) -> Slots:
        """The slots, the first at `place` of the text, after a step; parts of a block are revealed one by one."""
        masked_S = slots.is_mask(self.tokens)
        if len(logp_SV) < len(masked_S):  # a block's first token, alone
            return self.all_revealed(slots, logp_SV)
        part, first = self.attention.part or self.block, place + int(masked_S.argmax())
        begin = first // part * part - place
        chosen = slice(max(0, begin), begin + part)
        some = Slots(slots.ids[chosen], slots.probability[chosen])
        found = sampler.step(some, logp_SV[chosen], self.tokens, step, random)
        ids_S, probability_S = slots.ids.copy(), slots.probability.copy()
        ids_S[chosen], probability_S[chosen] = found.ids, found.probability
        return Slots(ids_S, probability_S)

    def all_revealed(self, slots: Slots, logp_SV: FloatArray) -> Slots:
        """The slots with the likeliest token in every mask that has logits."""
        rows = len(logp_SV)
        some = Slots(slots.ids[:rows], slots.probability[:rows])
        found = some.revealed(some.is_mask(self.tokens), logp_SV.argmax(-1), logp_SV)
        return Slots(
            np.concatenate((found.ids, slots.ids[rows:])), np.concatenate((found.probability, slots.probability[rows:]))
        )
