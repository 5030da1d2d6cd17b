"""The price of a look: how readily texts are shown automatically, given how many the user accepted so far."""

from collections import defaultdict, deque
from collections.abc import Callable
from functools import lru_cache
from time import monotonic

from mercury_engine.text.lines import equal_ends
from mercury_engine.utility import MIN_PROBABILITY, Utility

from mercury_lsp.documents.document import Edit
from mercury_lsp.settings import Eagerness

LEVELS: dict[Eagerness, float] = {"low": -1.0, "medium": 0.0, "high": 1.0}

EXPECTED_SHARE = 0.4
"""Share of the shown suggestions that a user accepts at the level `medium`."""

SHARE_RANGE = 0.18
"""How much higher or lower the share is at the levels `high` and `low`."""

PRIOR_SUGGESTIONS = 50
"""Weight of the expected share: after so many suggestions the user's own share counts as much."""

REMEMBERED = 200
"""Number of latest suggestions that count, by language."""

REFUSALS, REFUSED_WITHIN_SECONDS, CALM_SECONDS = 3, 30.0, 60.0
"""Typing against so many texts within this time doubles the price for a minute."""


OF_EDITS = Utility(min_probability=MIN_PROBABILITY)
"""When an edit of a model that was trained on edits is worth showing. The bound is low: the model has already decided
that something changes, and a product over many tokens is small even for a right edit."""

GOING_KEYS = 4
"""Keys that move the cursor to an edit, in addition to those that make it; assumed."""


def least_probability_of_edit(edit: Edit, gate: Utility) -> float:
    """Least probability at which an edit is worth showing automatically: it saves the characters that differ."""
    first, last = equal_ends(edit.removed, edit.inserted)
    removed, added = (len(text[first : len(text) - last].strip()) for text in (edit.removed, edit.inserted))
    return min(1.0, gate.least_probability(GOING_KEYS + removed + added))


class Price:
    """What this user accepted, by language. It reads no file: `learn` is told every outcome, old and new."""

    def __init__(self, clock: Callable[[], float] = monotonic):
        self._clock = clock
        self._taken: defaultdict[str, deque[bool]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self._refused = deque[float](maxlen=REFUSALS)

    def learn(self, language: str, was_taken: bool) -> None:
        """An automatic text was accepted, all or part of it; or the user typed something else."""
        self._taken[language].append(was_taken)

    def forget(self) -> None:
        """Start again from the expected share."""
        self._taken.clear()

    def refused(self) -> None:
        """The user has just typed against a text on display."""
        self._refused.append(self._clock())

    def gate(self, model: Utility, eagerness: Eagerness, language: str) -> Utility:
        """When a text is worth showing automatically: the model's own rule, at the user's eagerness."""
        level = self._level(language) if eagerness == "auto" else LEVELS[eagerness]
        return _times(model, 2.0 ** (self._wants_calm() - level))

    def explanation(self, eagerness: Eagerness, language: str) -> str:
        """A sentence for the user that says how readily texts are shown in a language, and why."""
        calm = "; you typed against several just now, so fewer are shown for a minute" if self._wants_calm() else ""
        if eagerness != "auto":
            return f"the setting eagerness is {eagerness}{calm}"
        taken = self._taken.get(language, ())
        level = self._level(language)
        nearest = min(LEVELS, key=lambda name: abs(LEVELS[name] - level))
        return f"you took {sum(taken)} of the last {len(taken)} in {language}: about eagerness {nearest}{calm}"

    def _level(self, language: str) -> float:
        """From -1, `low`, to 1, `high`."""
        taken = self._taken.get(language, ())
        share = (sum(taken) + PRIOR_SUGGESTIONS * EXPECTED_SHARE) / (len(taken) + PRIOR_SUGGESTIONS)
        return max(-1.0, min(1.0, (share - EXPECTED_SHARE) / SHARE_RANGE))

    def _wants_calm(self) -> bool:
        if len(self._refused) < REFUSALS:
            return False
        first, last = self._refused[0], self._refused[-1]
        return last - first <= REFUSED_WITHIN_SECONDS and self._clock() - last <= CALM_SECONDS


@lru_cache(16)  # the same twice a key, until the price moves
def _times(model: Utility, factor: float) -> Utility:
    return model.times(factor)
