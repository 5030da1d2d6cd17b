"""Find the context that gaps of a step share, so that it is prefilled once, and count what a step costs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mercury_engine.kv_cache.cache import TokenIds
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import KeyValueBlock, ModelConfig

from mercury_lab.training.examples.gaps import TrainingGap
from mercury_lab.training.optimisation.objective import Rows
from mercury_lab.training.optimisation.prefill import read_alone

BLOCKS_PER_PASS = 16
"""Blocks that are prefilled together."""


def unique_blocks(gaps: Sequence[TrainingGap]) -> list[TokenIds]:
    """The distinct blocks of the gaps, which are each prefilled alone."""
    return unique(block for gap in gaps for block in (*gap.far, *gap.suffix))


def unique(blocks: Iterable[TokenIds]) -> list[TokenIds]:
    """Each non-empty block once, short ones first, so that equal lengths are adjacent."""
    return sorted({block for block in blocks if block}, key=lambda block: (len(block), block))


def read_blocks(network: TorchDecoder, blocks: Sequence[TokenIds], start_id: int) -> dict[TokenIds, KeyValueBlock]:
    """The keys and values of every block, each prefilled alone, BLOCKS_PER_PASS per pass."""
    read: dict[TokenIds, KeyValueBlock] = {}
    for first in range(0, len(blocks), BLOCKS_PER_PASS):
        part = blocks[first : first + BLOCKS_PER_PASS]
        read.update(zip(part, read_alone(network, list(part), start_id), strict=True))
    return read


def stack(gap: TrainingGap) -> TokenIds:
    """The near tokens that are prefilled; the last one opens the canvas."""
    return tuple(gap.near[:-1])


def leaders(gaps: Sequence[TrainingGap]) -> list[int]:
    """For every gap, the index of a gap whose near stack begins with this gap's, after the same far blocks."""
    known: dict[tuple[TokenIds, ...], list[int]] = {}
    found = list(range(len(gaps)))
    for i in sorted(found, key=lambda i: -len(gaps[i].near)):
        mine = stack(gaps[i])
        same = known.setdefault(tuple(gaps[i].far), [])
        found[i] = next((j for j in same if stack(gaps[j])[: len(mine)] == mine), i)
        if found[i] == i:
            same.append(i)
    return found


@dataclass(frozen=True, slots=True)
class StepCost:
    """What a step computes, without padding: tokens and (row, key) pairs of prefill and of writing."""

    read: int = 0
    read_pairs: int = 0
    written: int = 0
    written_pairs: int = 0
    predicted: int = 0

    @classmethod
    def of(cls, gaps: Sequence[TrainingGap], rows: Rows) -> "StepCost":
        blocks = [len(b) + 1 for b in unique_blocks(gaps)]
        before = [1 + sum(map(len, gap.far)) for gap in gaps]
        stacks = [(len(gaps[i].near) - 1, before[i]) for i in set(leaders(gaps))]
        read_pairs = sum(n * (n + 1) // 2 for n in blocks) + sum(n * (n + 1) // 2 + n * far for n, far in stacks)
        seen = [far + len(g.near) - 1 + max(1, sum(map(len, g.suffix))) for far, g in zip(before, gaps, strict=True)]
        return cls(
            sum(blocks) + sum(n for n, _ in stacks),
            read_pairs,
            len(rows.ids),
            sum(seen[gap] for gap in rows.gap.tolist()) + int(rows.length.sum()),
            int((rows.weight > 0).sum()),
        )

    def __add__(self, other: "StepCost") -> "StepCost":
        return StepCost(*(getattr(self, name) + getattr(other, name) for name in StepCost.__slots__))

    def flops(self, config: ModelConfig, *, guesses: bool = False) -> float:
        """Multiplications and additions of one step: context forward; rows forward, and backward without the
        gradients of frozen matrices; `guesses` adds one more forward pass of the rows."""
        heads = config.num_attention_heads * config.head_dim
        keys = config.num_key_value_heads * config.head_dim
        shapes = (
            (config.hidden_size, heads + 2 * keys),
            (heads, config.hidden_size),
            (config.hidden_size, 2 * config.intermediate_size),
            (config.intermediate_size, config.hidden_size),
        )
        matrices = config.num_hidden_layers * sum(a * b for a, b in shapes)
        adapter = config.num_hidden_layers * config.adapter_rank * sum(a + b for a, b in shapes)
        attention = 2 * config.num_hidden_layers * heads  # multiply-adds of a (row, key) pair
        head = config.hidden_size * (config.vocab_size + 1)
        read = matrices * self.read + attention * self.read_pairs
        forward = (matrices + adapter) * self.written + attention * self.written_pairs + head * self.predicted
        backward = forward + adapter * self.written + attention * self.written_pairs
        return 2.0 * (read + backward + forward * (2 if guesses else 1))
