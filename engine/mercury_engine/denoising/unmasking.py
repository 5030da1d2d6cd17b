"""The unmasking rule: which masked slots to commit.

Dimensions: S slots, V vocabulary.
"""

from torch import Tensor

LOWEST_LOG_PROBABILITY = -1e4
"""Nats. Keeps 0 * -inf out of an entropy; `exp` is 0 long before it, so it changes no value."""


def entropy(logp_SV: Tensor) -> Tensor:
    """Entropy [S] in nats of log-probabilities [S,V]; a token with probability 0 adds nothing."""
    return -(logp_SV.exp() * logp_SV.clamp_min(LOWEST_LOG_PROBABILITY)).sum(-1)


def choose_by_entropy(entropy_S: Tensor, masked_S: Tensor, bound: float) -> Tensor:
    """Masked slots to commit: rising entropy while sum - max <= bound (nats); at least one. arXiv 2505.24857."""
    entropy_S = entropy_S.masked_fill(~masked_S, float("inf"))
    rising_S, order_S = entropy_S.sort()
    before_S = rising_S.cumsum(0).roll(1)  # sum - max of a rising run is the sum before its last slot
    before_S[0] = 0.0
    within_S = before_S <= bound
    within_S[0] = True
    chosen_S = masked_S.new_zeros(masked_S.shape).scatter(0, order_S, within_S)
    return chosen_S & masked_S


def choose_by_confidence(confidence_S: Tensor, masked_S: Tensor, threshold: float) -> Tensor:
    """Masked slots at least this confident, and always the most confident one. arXiv 2505.22618."""
    confidence_S = confidence_S.masked_fill(~masked_S, -1.0)
    chosen_S = confidence_S >= threshold
    chosen_S[confidence_S.argmax()] = True
    return chosen_S & masked_S
