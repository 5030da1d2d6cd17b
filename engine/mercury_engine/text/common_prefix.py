"""How far two sequences agree from the start."""

from collections.abc import Iterable


def common_prefix(left: Iterable[object], right: Iterable[object]) -> int:
    """Number of leading items that are equal; pass reversed sequences to compare from the end."""
    count = 0
    for ours, theirs in zip(left, right, strict=False):
        if ours != theirs:
            break
        count += 1
    return count


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
