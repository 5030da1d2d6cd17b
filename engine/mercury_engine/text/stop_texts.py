"""Where a text reaches one that ends it, and how much of its end may be the beginning of one."""

from collections.abc import Iterable


def first_of(text: str, stops: Iterable[str], start: int = 0) -> int | None:
    """Where the first of the stop texts begins, none of them empty, from `start` on; None if there is none."""
    return min((at for each in stops if (at := text.find(each, start)) >= 0), default=None)


def begun(text: str, other: str) -> int:
    """Number of characters at the end of a text that may be the beginning of the other one, not all of it."""
    sizes = range(min(len(text), len(other) - 1), 0, -1)
    return next((size for size in sizes if other.startswith(text[-size:])), 0)
