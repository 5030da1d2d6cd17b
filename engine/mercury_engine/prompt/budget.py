"""The token budget of a request's context: the text nearest to the gap, as much as the model handles well."""

from collections.abc import Sequence, Sized
from typing import TypeVar

from mercury_engine.kv_cache.read_ahead import TokenIds

Block = TypeVar("Block", bound=Sized)

NEAR_TOKENS = 2048
"""Longest near prefix, in tokens; a CPU prefills about 1,000 per second."""

NEAR_HOP_TOKENS = 512
"""Tokens dropped at once when the near prefix is too long, so that typing rarely moves its start."""

REST_TOKENS = 512
"""Most tokens of the rest of the cursor's line."""

SEGMENT_TOKENS = 4096
"""Most tokens of the far blocks, and of the suffix."""

LOOKUP_BLOCKS = 1024
"""Most blocks of lookup text."""

LOOKUP_TOKENS = 1 << 16
"""Most tokens of lookup text."""

NEW_LOOKUP_BLOCKS = 64
"""Most lookup blocks tokenized for a request with a deadline; takes some 10 ms."""


def near_part(ids: Sequence[int]) -> TokenIds:
    """The end of a near prefix that fits the budget."""
    surplus = max(0, len(ids) - NEAR_TOKENS)
    return tuple(ids[surplus + -surplus % NEAR_HOP_TOKENS :])


def far_part(blocks: Sequence[TokenIds]) -> list[TokenIds]:
    """The last far blocks that together fit the budget."""
    return nearest(blocks[::-1], SEGMENT_TOKENS)[::-1]


def suffix_part(blocks: Sequence[TokenIds]) -> list[TokenIds]:
    """The first suffix blocks that together fit the budget; if the first alone is too long, its beginning."""
    return nearest([blocks[0][:SEGMENT_TOKENS], *blocks[1:]], SEGMENT_TOKENS) if blocks else []


def nearest(blocks: Sequence[Block], room: int) -> list[Block]:
    """The longest run of first blocks, of tokens or characters, that together fit the room."""
    kept: list[Block] = []
    for block in blocks:
        room -= len(block)
        if room < 0:
            break
        kept.append(block)
    return kept
