"""Sampling: chooses the tokens of a text from the model's distributions.

Each token takes one random number, whatever was drafted, so a seed makes the text a function of the request.

Dimensions: V vocabulary, K tokens that are left, by falling probability.
"""

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from mercury_engine.api import Sampling, TokenLogProbability
from mercury_engine.decoding.hypothesis import checked
from mercury_engine.models.arrays import Array, FloatArray, IdArray, MaskArray, best, masked, on_host

SORTED_FIRST = 1024
"""Tokens sorted before all others; they nearly always hold `top_p`. Sorting a vocabulary takes some 10 ms."""

LEAST_TEMPERATURE = float(np.finfo(np.float32).tiny)
"""Below it the likeliest token is as good as certain, and float32 divides 0 by 0."""


class TokenSampler:
    """Chooses the tokens of one text, from left to right."""

    def __init__(self, sampling: Sampling, prompt: Iterable[int]) -> None:
        self._sampling = sampling
        self._random = np.random.default_rng(sampling.seed)
        self._counts = Counter[int]()
        """How often the text holds each token."""
        self._repeated = {*prompt} if sampling.repetition_penalty != 1 else set[int]()
        """Tokens of the prompt and of the text, where that matters."""
        penalties = sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty
        self._has_penalties = penalties != (1.0, 0.0, 0.0)

    def choose(self, logp_V: Array, hidden_V: MaskArray | None = None) -> int:
        """The next token, none of the hidden ones. Raises ModelCorrupt when its probability is NaN."""
        if hidden_V is not None:
            logp_V = masked(logp_V, hidden_V)
        if self._has_penalties:
            logp_V = self._penalised(np.array(on_host(logp_V)))
        is_certain = self._sampling.temperature < LEAST_TEMPERATURE
        token = best(logp_V) if is_certain else self._drawn(on_host(logp_V))
        checked(float(logp_V[token]))
        return token

    def accept(self, token: int) -> None:
        """Count a token of the text."""
        if self._has_penalties:
            self._counts[token] += 1
            self._repeated.add(token)

    def _penalised(self, logp_V: FloatArray) -> FloatArray:
        """The array, changed in place."""
        repeated, written = np.array([*self._repeated], np.int64), np.array([*self._counts], np.int64)
        if self._sampling.repetition_penalty != 1:
            logp_V[repeated] *= self._sampling.repetition_penalty
        times = np.array([*self._counts.values()], np.float32)
        logp_V[written] -= self._sampling.presence_penalty + self._sampling.frequency_penalty * times
        return logp_V

    def _drawn(self, logp_V: FloatArray) -> int:
        """A token drawn from what the sampling leaves of the distribution."""
        power_V = np.exp((logp_V - logp_V.max()) / self._sampling.temperature, dtype=np.float64)
        left_K = self._left(power_V)
        sums_K = np.cumsum(power_V if left_K is None else power_V[left_K])
        at = min(int(np.searchsorted(sums_K, self._random.random() * sums_K[-1], "right")), len(sums_K) - 1)
        return at if left_K is None else int(left_K[at])

    def _left(self, power_V: FloatArray) -> IdArray | None:
        """The tokens that `top_k`, `top_p` and `min_p` leave; None for all. The likeliest one has power 1."""
        sampling = self._sampling
        if not sampling.top_k and sampling.top_p >= 1:
            return np.flatnonzero(power_V >= sampling.min_p) if sampling.min_p > 0 else None
        left_K = likeliest(power_V, sampling.top_k or SORTED_FIRST)
        if sampling.top_p < 1:
            wanted = sampling.top_p * float((power_V[left_K] if sampling.top_k else power_V).sum())
            if not sampling.top_k and power_V[left_K].sum() < wanted:
                left_K = likeliest(power_V, len(power_V))
            left_K = left_K[: 1 + int(np.searchsorted(np.cumsum(power_V[left_K]), wanted))]
        return left_K[power_V[left_K] >= sampling.min_p]


def likeliest(values_V: FloatArray, count: int) -> IdArray:
    """The indices of the largest values, by falling value."""
    if count >= len(values_V):
        return np.argsort(-values_V, kind="stable")
    first_K = np.argpartition(-values_V, count - 1)[:count]
    return first_K[np.argsort(-values_V[first_K], kind="stable")]


def log_probability(logp_V: Array, token: int, alternatives: int, piece: Callable[[int], bytes]) -> TokenLogProbability:
    """What the model, before penalties and temperature, found of a token and of the likeliest ones in its place.

    `piece`: the bytes of a token.
    """
    host_V = on_host(logp_V)
    others = likeliest(host_V, alternatives).tolist() if alternatives else []

    def found(token: int, others: tuple[TokenLogProbability, ...] = ()) -> TokenLogProbability:
        data = piece(token)
        return TokenLogProbability(data.decode("utf-8", "replace"), float(host_V[token]), tuple(data), others)

    return found(token, tuple(map(found, others)))
