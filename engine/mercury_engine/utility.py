"""The expected value of an automatic suggestion: the characters it saves."""

from dataclasses import dataclass
from math import isfinite

ACCEPT_KEYS = 1
"""Keys that accept a suggestion."""

MIN_PROBABILITY = 0.15
"""Least probability of an automatic suggestion at any eagerness."""

FINISHED_CHARS = 8
"""Bonus for a finished text, in characters: nobody has to look where it stops and go on from there."""


@dataclass(frozen=True, slots=True)
class Utility:
    """Probability times length, less what reading a wrong text costs; all in characters to type.

    `python -m mercury_lab.evaluation calibration` fits the values for a model. The defaults were chosen on unseen code
    of others, to save many keystrokes with few useless suggestions. Raises ValueError for values out of range.
    """

    wrong_cost: float = 12.0
    """What reading a wrong text costs."""
    least: float = 2.0
    """Least utility of a text that is shown."""
    min_probability: float = 0.4
    """Least probability of a text that is shown, however much it would save."""

    def __post_init__(self) -> None:
        if not (isfinite(self.wrong_cost) and isfinite(self.least)):
            raise ValueError(f"wrong_cost is {self.wrong_cost} and least {self.least}; both must be finite")
        if not 0 <= self.min_probability < 1:
            raise ValueError(f"min_probability is {self.min_probability}; it must be at least 0 and below 1")

    def of(self, probability: float, text: str, is_finished: bool) -> float:
        """The expected utility of a text that is right with this probability; finished texts end where the gap does."""
        return probability * _gain(typed_characters(text), is_finished) - (1 - probability) * self.wrong_cost

    def is_enough(self, probability: float, text: str, is_finished: bool) -> bool:
        return probability >= self.min_probability and self.of(probability, text, is_finished) >= self.least

    def least_probability(self, length: int) -> float:
        """The probability below which no text of `length` typed characters is shown; above 1 if it is too short."""
        worth = (self.least + self.wrong_cost) / max(1.0, _gain(length, is_finished=True) + self.wrong_cost)
        return max(self.min_probability, worth)

    def times(self, factor: float) -> "Utility":
        """A copy with higher or lower costs and bounds, to show less or more.

        The odds of the least probability change with the factor's square: 0.4 becomes 0.73 for 2.
        """
        if factor == 1:
            return self
        odds = factor**2 * self.min_probability / (1 - self.min_probability)
        floor = min(self.min_probability, MIN_PROBABILITY)
        return Utility(self.wrong_cost * factor, self.least * factor, max(floor, odds / (1 + odds)))


def _gain(length: int, is_finished: bool) -> int:
    """Keys saved, plus the bonus; a text that saves one key is not worth the look even if it is finished."""
    saved = max(0, length - ACCEPT_KEYS)
    return saved + FINISHED_CHARS * (is_finished and saved > 1)


def typed_characters(text: str) -> int:
    """The characters that a user would have to type: editors indent lines, and blanks at the end are none."""
    return sum(len(line.strip()) for line in text.splitlines()) + max(0, len(text.strip().splitlines()) - 1)
