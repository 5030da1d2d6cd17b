"""The unmasking rule: which masked slots to commit.

Dimensions: S slots, V vocabulary.
"""

import numpy as np

from mercury_engine.models.arrays import Array, FloatArray, MaskArray, namespace, on_host

LOWEST_LOG_PROBABILITY = -1e4
"""Nats. Keeps 0 * -inf out of an entropy; `exp` is 0 long before it, so it changes no value."""


def entropy(logp_SV: Array) -> FloatArray:
    """Entropy [S] in nats of log-probabilities [S,V]; a token with probability 0 adds nothing."""
    xp = namespace(logp_SV)
    return on_host(-(xp.exp(logp_SV) * xp.clip(logp_SV, LOWEST_LOG_PROBABILITY, None)).sum(-1))


def choose_by_entropy(entropy_S: FloatArray, masked_S: MaskArray, bound: float) -> MaskArray:
    """Masked slots to commit: rising entropy while sum - max <= bound (nats); at least one. arXiv 2505.24857."""
    entropy_S = np.where(masked_S, entropy_S, np.inf)
    order_S = np.argsort(entropy_S, kind="stable")
    before_S = np.roll(np.cumsum(entropy_S[order_S]), 1)  # sum - max of a rising run: the sum before its last slot
    before_S[0] = 0.0
    chosen_S = np.zeros(masked_S.shape, np.bool_)
    chosen_S[order_S[before_S <= bound]] = True
    return chosen_S & masked_S


def choose_by_confidence(confidence_S: FloatArray, masked_S: MaskArray, threshold: float) -> MaskArray:
    """Masked slots at least this confident, and always the most confident one. arXiv 2505.22618."""
    confidence_S = np.where(masked_S, confidence_S, -1.0)
    chosen_S = confidence_S >= threshold
    chosen_S[confidence_S.argmax()] = True
    return chosen_S & masked_S
