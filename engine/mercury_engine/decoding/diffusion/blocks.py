"""What fills and generated texts do with the blocks of a model that denoises one after the other.

Dimensions: S slots, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np

from mercury_engine.decoding.diffusion.rules import ConfidenceThreshold, Slots, Tokens
from mercury_engine.decoding.options import DiffusionOptions
from mercury_engine.kv_cache.blockwise import BlockwiseCache
from mercury_engine.models.arrays import MaskArray
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network
from mercury_engine.models.row_answers import RowAnswers, RowQuestion


class Blocks:
    """A model's blocks: what it expects in their slots, and which of those a step reveals."""

    def __init__(self, network: Network, options: DiffusionOptions) -> None:
        attention = network.config.masked_attention
        assert attention is not None and attention.block is not None
        self.attention, self.block = attention, attention.block
        self.cache = BlockwiseCache(network, attention.block, attention.mask_id)
        self.tokens, self.longest = Tokens(attention.mask_id), network.config.max_position_embeddings
        self._vocabulary = network.config.vocab_size
        self.rule = ConfidenceThreshold(attention.threshold if options.threshold is None else options.threshold)

    def read(self, ids: Sequence[int]) -> ForwardSteps[None]:
        """Read the whole blocks of a text."""
        if self.cache.unread(ids):
            whole = list(ids[: len(ids) // self.block * self.block])
            yield from self.cache.read(whole, len(whole), [])

    def told(
        self, ids: Sequence[int], slots: Sequence[int], hidden: Sequence[MaskArray], draws: bool
    ) -> ForwardSteps[RowAnswers]:
        """What a pass tells of the slots up to the end of the block after `ids`; each may not get its hidden tokens.

        Where a row predicts the token of the next one, a block's first token comes from the last row before the block:
        then there is one row of results.
        """
        place = len(ids) % self.block
        start = len(ids) - place
        if self.attention.shifted and not place and start:
            question = RowQuestion.of(hidden[:1], self._vocabulary, draws)
            return (yield from self.cache.read(list(ids), start - self.block, [start - 1], question))
        rows = [*ids, *slots]
        wanted = [max(start, row - self.attention.shifted) for row in range(len(ids), len(rows))]
        question = RowQuestion.of(hidden, self._vocabulary, draws)
        return (yield from self.cache.read(rows, start, wanted, question))

    def opened(self, ids: Sequence[int]) -> Slots:
        """The slots after a text, up to the end of their block: masks."""
        return Slots.masked(self.block - len(ids) % self.block, self.tokens)

    def revealed(
        self,
        rule: ConfidenceThreshold,
        slots: Slots,
        told: RowAnswers,
        place: int,
        step: int,
        random: np.random.Generator,
    ) -> Slots:
        """The slots, the first at `place` of the text, after a step; parts of a block are revealed one by one."""
        masked_S = slots.is_mask(self.tokens)
        if len(told.token_W) < len(masked_S):  # a block's first token, alone
            return self.all_revealed(slots, told)
        part, first = self.attention.part or self.block, place + int(masked_S.argmax())
        begin = first // part * part - place
        chosen = slice(max(0, begin), begin + part)
        some = Slots(slots.ids[chosen], slots.probability[chosen])
        found = rule.step(some, told.part(chosen), self.tokens, step, random)
        ids_S, probability_S = slots.ids.copy(), slots.probability.copy()
        ids_S[chosen], probability_S[chosen] = found.ids, found.probability
        return Slots(ids_S, probability_S)

    def all_revealed(self, slots: Slots, told: RowAnswers) -> Slots:
        """The slots with the likeliest token in every mask that the pass told of."""
        rows = len(told.token_W)
        found = Slots(slots.ids[:rows], slots.probability[:rows]).all_revealed(told, self.tokens)
        return Slots(
            np.concatenate((found.ids, slots.ids[rows:])), np.concatenate((found.probability, slots.probability[rows:]))
        )
