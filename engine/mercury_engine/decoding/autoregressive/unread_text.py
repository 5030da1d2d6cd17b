"""Text that the model has not read: where it repeats the last tokens, what follows there has a share."""

from mercury_engine.decoding.autoregressive.ngram_lookup import NgramMatch

LARGEST_LOOKUP_SHARE = 0.9
"""Share of the n-gram's opinion for the longest matches; the model's opinion always counts."""


def lookup_share(match: NgramMatch, recall: float) -> float:
    """The share of a match in unread text: `recall` for each matching token beyond the first; not positive for none."""
    return min(LARGEST_LOOKUP_SHARE, recall * (match.length - 1))
