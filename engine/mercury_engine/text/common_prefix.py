"""How far two sequences agree from the start."""

from collections.abc import Iterable
from itertools import chain, compress, count
from operator import ne

LEFT_END, RIGHT_END = (object(),), (object(),)
"""Items that equal no other, so two sequences always differ somewhere."""


def common_prefix(left: Iterable[object], right: Iterable[object]) -> int:
    """Number of leading items that are equal; pass reversed sequences to compare from the end."""
    differ = map(ne, chain(left, LEFT_END), chain(right, RIGHT_END))
    return next(compress(count(), differ))  # no Python code an item: prefixes of thousands of tokens are compared


def common_text_prefix(left: str, right: str, limit: int) -> int:
    """Number of leading characters that are equal, at most `limit`; bisects, so it is fast on whole documents."""
    least = 0
    while least < limit:
        middle = (least + limit + 1) // 2
        if left[least:middle] == right[least:middle]:
            least = middle
        else:
            limit = middle - 1
    return least


def common_text_ends(left: str, right: str) -> tuple[int, int]:
    """Numbers of leading and, of the rest, of trailing characters that are equal."""
    room = min(len(left), len(right))
    lead = common_text_prefix(left, right, room)
    return lead, common_text_prefix(left[::-1], right[::-1], room - lead)
