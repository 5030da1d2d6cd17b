"""The price of a look: how readily texts are shown unasked, by what this user took of the earlier ones."""

from collections import defaultdict, deque
from collections.abc import Callable
from time import monotonic

from mercury_engine.text.lines import equal_ends
from mercury_engine.utility import MIN_PROBABILITY, Utility

from mercury_lsp.settings import Eagerness

LEVELS: dict[Eagerness, float] = {"low": -1.0, "medium": 0.0, "high": 1.0}

EXPECTED_SHARE = 0.4
"""Share of the shown suggestions that a user takes at the level `medium`."""

SHARE_RANGE = 0.18
"""How far the share lies from that, up or down, at the levels `high` and `low`."""

PRIOR_SUGGESTIONS = 50
"""Suggestions that the expected share counts for: so many must be seen before the user's own share weighs as much."""

REMEMBERED = 200
"""Latest suggestions of a language that count."""

REFUSALS, REFUSED_WITHIN_SECONDS, CALM_SECONDS = 3, 30.0, 60.0
"""So many texts typed against within that time double the price for a minute."""


OF_EDITS = Utility(min_probability=MIN_PROBABILITY)
"""When an edit of a model that was trained on edits is worth showing: it has said already that something changes, and
the product of the probabilities of many tokens is small even where the edit is right."""

GOING_KEYS = 4
"""Keys that take the cursor to an edit, beside those that make it; assumed."""


def least_probability_of_edit(old: str, new: str, gate: Utility) -> float:
    """The probability from which on an edit is worth showing unasked: it saves the characters that differ."""
    first, last = equal_ends(old, new)
    removed, added = (len(text[first : len(text) - last].strip()) for text in (old, new))
    return min(1.0, gate.least_probability(GOING_KEYS + removed + added))


class Price:
    """What this user took, by language. Knows nothing of the disk: `learn` is told every outcome, old and new."""

    def __init__(self, clock: Callable[[], float] = monotonic):
        self._clock = clock
        self._taken: defaultdict[str, deque[bool]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self._refused = deque[float](maxlen=REFUSALS)

    def learn(self, language: str, was_taken: bool) -> None:
        """A text shown unasked was taken, all or part of it; or the user typed something else."""
        self._taken[language].append(was_taken)

    def forget(self) -> None:
        """Start again from the expected share."""
        self._taken.clear()

    def refused(self) -> None:
        """The user has just typed against a text on display."""
        self._refused.append(self._clock())

    def gate(self, model: Utility, eagerness: Eagerness, language: str) -> Utility:
        """When a text is worth showing unasked: the model's own rule, as eagerly as the user wants it."""
        level = self._level(language) if eagerness == "auto" else LEVELS[eagerness]
        return model.times(2.0 ** (self._wants_calm() - level))

    def explanation(self, eagerness: Eagerness, language: str) -> str:
        """A sentence for the user: how readily texts are shown in a language, and why."""
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
