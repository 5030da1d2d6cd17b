"""Mixing opinions on the next slot: the reader's, the writer's, and that of text the reader has not read.

Dimensions: V vocabulary; the reader's rows lack mask and end, which stand last in the others.
"""

import math
from collections.abc import Sequence

from mercury_engine.denoising.ngram_lookup import NgramMatch
from mercury_engine.denoising.rule import DenoisingRule
from mercury_engine.denoising.stopping import StopTokens
from mercury_engine.models.arrays import Array, beside, logsumexp, namespace

NEGATIVE_INFINITY = float("-inf")

LARGEST_LOOKUP_SHARE = 0.9
"""Share of the n-gram's opinion for the longest matches; the reader's opinion always counts."""


def mix_opinions(
    rule: DenoisingRule, stop: StopTokens | None, written_V: Array | None, read_V: Array, is_first: bool
) -> Array:
    """Unnormalised log-probabilities [V] of a slot: a log-linear mixture, with odds of its own for the end.

    The reader's opinion of the end is the probability of the `stop` tokens; without them the fill cannot end here.
    `is_first`: the slot is the leftmost open one, so the writer has seen everything before it.
    """
    end = NEGATIVE_INFINITY if stop is None else logsumexp(read_V[beside(stop.tokens, read_V)])
    content_V = read_V
    if written_V is not None:
        share = rule.next_weight if is_first else rule.later_weight
        content_V = share * written_V[: len(read_V)] + (1 - share) * read_V
        if stop is not None:
            end = rule.end_weight * float(written_V[-1]) + (1 - rule.end_weight) * end
    return namespace(content_V).concatenate((content_V, _same_kind([NEGATIVE_INFINITY, end], content_V)))


def mix_in_unread(read_V: Array, match: NgramMatch, recall: float) -> Array:
    """Log-probabilities [V] of a slot: a linear mixture of the reader's and those of the match in unread text.

    The match's share is `recall` for each matching token beyond the first.
    """
    share = lookup_share(match, recall)
    if share <= 0 or not match.unread:
        return read_V
    xp, tokens = namespace(read_V), beside([*match.unread], read_V)
    unread = share * _same_kind([*match.unread.values()], read_V)
    mixed_V = read_V + math.log1p(-share)
    mixed_V[tokens] = xp.log(xp.exp(mixed_V[tokens]) + unread)
    return mixed_V


def lookup_share(match: NgramMatch, recall: float) -> float:
    """The share of a match in unread text: `recall` for each matching token beyond the first; not positive for none."""
    return min(LARGEST_LOOKUP_SHARE, recall * (match.length - 1))


def _same_kind(values: Sequence[float], array: Array) -> Array:
    """The values in the dtype of an array and on its device."""
    return namespace(array).asarray(values, dtype=array.dtype, device=array.device)
