"""Shares and their confidence intervals."""

import math
from typing import Any

Z_95 = 1.959964
"""Normal quantile of a two-sided interval of 95 %."""


def wilson(part: int, whole: int) -> tuple[float, float] | None:
    """The 95 % Wilson score interval of part / whole; None if whole is 0. Wilson 1927, J. Am. Stat. Assoc. 22."""
    if not whole:
        return None
    share, spread = part / whole, Z_95**2 / whole
    centre = (share + spread / 2) / (1 + spread)
    half = math.sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    return max(0.0, centre - half), min(1.0, centre + half)


def rate(part: int, whole: int) -> dict[str, Any]:
    """The share, None of nothing, with its 95 % interval."""
    return {"share": part / whole if whole else None, "interval": wilson(part, whole)}
