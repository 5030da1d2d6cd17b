"""The characters that a user may type next, as the first tokens of a fill tell.

Dimensions: W wanted rows, K candidates.
"""

import math
from collections.abc import Sequence

from mercury_engine.models.row_answers import RowAnswers

LEAST_PROBABILITY = 0.2
"""Least probability of a character that is worth preparing for; preparing costs about a pass."""


class NextCharacters:
    """The probabilities of the characters after the cursor."""

    def __init__(self, texts: Sequence[str]) -> None:
        """`texts`: of each token."""
        self._texts = texts
        self._shares: dict[str, float] = {}
        self._open = 1.0
        """Probability that the tokens so far only spell what stands before the cursor."""

    @property
    def is_known(self) -> bool:
        """Whether a further token would tell nothing more."""
        return self._open < LEAST_PROBABILITY

    def add(self, spell: str, told: RowAnswers) -> None:
        """Take in the candidates of the first row for the next token, which has to begin with `spell` or spell it."""
        exact = 0.0
        for token, logp in zip(told.candidate_WK[0].tolist(), told.candidate_logp_WK[0].tolist(), strict=True):
            text = self._texts[token]
            if text == spell:
                exact += math.exp(logp)
            elif text.startswith(spell):
                character = text[len(spell)]
                self._shares[character] = self._shares.get(character, 0.0) + self._open * math.exp(logp)
        self._open *= exact

    def likeliest(self) -> tuple[str, ...]:
        """The likely ones, by falling probability."""
        likely = [each for each, share in self._shares.items() if share >= LEAST_PROBABILITY]
        return tuple(sorted(likely, key=self._shares.__getitem__, reverse=True))
