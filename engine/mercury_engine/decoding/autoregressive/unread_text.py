"""Text that the model has not read: where it repeats the last tokens, what follows there has a share in the next one.

Dimensions: V vocabulary.
"""

import math

from mercury_engine.decoding.autoregressive.ngram_lookup import NgramMatch
from mercury_engine.models.arrays import Array, beside, namespace

LARGEST_LOOKUP_SHARE = 0.9
"""Share of the n-gram's opinion for the longest matches; the model's opinion always counts."""


def mix_in_unread(read_V: Array, match: NgramMatch, recall: float) -> Array:
    """Log-probabilities [V] of a token: a linear mixture of the model's and those of the match in unread text.

    The match's share is `recall` for each matching token beyond the first.
    """
    share = lookup_share(match, recall)
    if share <= 0 or not match.unread:
        return read_V
    xp, tokens = namespace(read_V), beside([*match.unread], read_V)
    unread = share * xp.asarray([*match.unread.values()], dtype=read_V.dtype, device=read_V.device)
    mixed_V = read_V + math.log1p(-share)
    mixed_V[tokens] = xp.log(xp.exp(mixed_V[tokens]) + unread)
    return mixed_V


def lookup_share(match: NgramMatch, recall: float) -> float:
    """The share of a match in unread text: `recall` for each matching token beyond the first; not positive for none."""
    return min(LARGEST_LOOKUP_SHARE, recall * (match.length - 1))
