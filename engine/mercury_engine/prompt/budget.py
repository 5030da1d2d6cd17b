"""How much of a request's context is read: what lies nearest to the gap, up to what the model is good for."""

from collections.abc import Sequence

from mercury_engine.kv_cache.cache import TokenIds

NEAR_TOKENS = 2048
"""Of the near prefix at most; a CPU reads about a thousand a second."""

NEAR_HOP_TOKENS = 512
"""The near prefix loses so many tokens at once when it is too long, so that typing moves its start rarely."""

SEGMENT_TOKENS = 4096
"""Of the far blocks at most, and of the suffix."""

LOOKUP_BLOCKS = 1024
LOOKUP_TOKENS = 1 << 16
"""Of text that is looked through and not read."""

NEW_LOOKUP_BLOCKS = 64
"""So many of them are tokenized for a request that has a deadline, which takes some 10 ms."""


def near_part(ids: Sequence[int]) -> TokenIds:
    """The end of a near prefix."""
    surplus = max(0, len(ids) - NEAR_TOKENS)
    return tuple(ids[surplus + -surplus % NEAR_HOP_TOKENS :])


def far_part(blocks: Sequence[TokenIds]) -> list[TokenIds]:
    """The last far blocks that fit together."""
    return nearest(blocks[::-1])[::-1]


def suffix_part(blocks: Sequence[TokenIds]) -> list[TokenIds]:
    """The first suffix blocks that fit together; of a head that alone is too long its beginning."""
    return nearest([blocks[0][:SEGMENT_TOKENS], *blocks[1:]]) if blocks else []


def nearest(blocks: Sequence[TokenIds]) -> list[TokenIds]:
    """As many blocks from the first on as fit together."""
    kept: list[TokenIds] = []
    room = SEGMENT_TOKENS
    for block in blocks:
        room -= len(block)
        if room < 0:
            break
        kept.append(block)
    return kept
