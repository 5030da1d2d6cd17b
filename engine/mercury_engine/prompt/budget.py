"""How much of a request's context is read: what lies nearest to the gap, up to what the model is good for."""

from collections.abc import Sequence

from mercury_engine.kv_cache.cache import Tokens

NEAR_TOKENS = 2048
"""Of the near prefix at most; a CPU reads about a thousand a second."""

HOP = 512
"""The near prefix loses so many tokens at once when it is too long, so that typing moves its start rarely."""

SIDE_TOKENS = 4096
"""Of the far blocks at most, and of the suffix."""

ELSEWHERE_BLOCKS = 1024
ELSEWHERE_TOKENS = 1 << 16
"""Of text that is looked through and not read."""

NEW_BLOCKS = 64
"""So many of them are tokenized for a request that has a deadline, which takes some 10 ms."""


def near_part(ids: Sequence[int]) -> Tokens:
    """The end of a near prefix."""
    surplus = max(0, len(ids) - NEAR_TOKENS)
    return tuple(ids[surplus + -surplus % HOP :])


def far_part(blocks: Sequence[Tokens]) -> list[Tokens]:
    """The last far blocks that fit together."""
    return nearest(blocks[::-1])[::-1]


def suffix_part(blocks: Sequence[Tokens]) -> list[Tokens]:
    """The first suffix blocks that fit together; of a head that alone is too long its beginning."""
    return nearest([blocks[0][:SIDE_TOKENS], *blocks[1:]]) if blocks else []


def nearest(blocks: Sequence[Tokens]) -> list[Tokens]:
    """As many blocks from the first on as fit together."""
    kept: list[Tokens] = []
    room = SIDE_TOKENS
    for block in blocks:
        room -= len(block)
        if room < 0:
            break
        kept.append(block)
    return kept
