"""A hypothesis: what a decoder has accepted of one fill, token by token from the left.

Accepted tokens are final; only `reopen` takes some away again. What stands after them is the decoder's own: nothing
for a causal model, a canvas of masked slots for a masked diffusion model.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from mercury_engine.api import PART_OF_A_CHARACTER, SlotView
from mercury_engine.decoding.next_characters import NextCharacters
from mercury_engine.errors import ModelCorrupt

Closings = tuple[tuple[str, float], ...]
"""What a token closes: the marks that it begins with, from the first one to all, with the probability of all tokens
that begin so. The belief in a quote is divided between `"`, `")` and `"),`."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens: their texts ("" for a token without text), the mask and the end marker."""

    texts: list[str]
    mask_id: int
    end_id: int
    decode: Callable[[list[int]], str] | None = None
    """Spells tokens that share the bytes of a character; None where no tokens do."""

    def spelled(self, ids: Sequence[int]) -> str:
        """The tokens' text; a character whose last bytes are missing is a replacement character."""
        text = "".join(self.texts[i] for i in ids)
        return self.decode([*ids]) if self.decode is not None and PART_OF_A_CHARACTER in text else text


class SlotLimits(NamedTuple):
    """What limits a slot: text to spell, whether it may break the line, a token that proved wrong there."""

    spell: str
    multiline: bool
    banned: int | None = None


@dataclass(slots=True)
class Hypothesis:
    """The accepted tokens of one fill, and the gap that they fill."""

    vocabulary: Vocabulary
    ids: list[int]
    """The accepted tokens; those that are known from the start come first."""
    capacity: int
    """Most tokens, the known ones included."""
    begun: str = ""
    """Text before the cursor that the first tokens have to spell."""
    rank: int = 0
    """Rank of the first token that has nothing to spell: 0 is the likeliest. Sets candidates apart."""
    follows: str = ""
    """Text after the gap."""
    below: str = ""
    """Text after the gap from its line's end on, as far as a fill of several lines must not repeat it."""
    line: str | None = None
    """The cursor's line before the gap if the fill may have several lines."""
    above: str | None = None
    """The text above that line if the fill ends with its definition; None if with a thought (`text.thought`)."""
    multiline: bool = False
    """Whether the text may break the line; if not, it ends with the token that does."""
    writes_on: bool = False
    """Whether the model's own end is passed over, because the end is looked for afterwards."""
    limit: int | None = None
    """Most characters of the text; None: no limit."""
    foreseen: NextCharacters | None = None
    """The characters that may follow the cursor, if they are wanted."""
    fit: float = -math.inf
    """How well the text fits, in nats, if its end was searched for or it was ranked (`fit`)."""
    known: int = field(init=False)
    """Number of tokens that were known at the start."""
    spell: str = field(init=False)
    """The part of `begun` that is still to be spelled."""
    probabilities: list[float] = field(init=False)
    """Of each token when it was accepted, and of the end marker if the fill has ended with one."""
    closings: list[Closings] = field(init=False)
    """Of each of them what its token closes, as far as the decoder knows."""
    confidence: float = 1.0
    """Product of `probabilities`."""
    ended: bool = False
    banned: dict[int, int] = field(default_factory=dict)
    """The token that proved wrong, by its place."""
    steps: int = 0

    def __post_init__(self) -> None:
        self.known, self.spell = len(self.ids), self.begun
        self.probabilities, self.closings = [1.0] * self.known, [()] * self.known

    def accept(self, token: int, probability: float, closings: Closings = ()) -> None:
        """Add a token, or end the fill; a token that spells `begun` does not count against the confidence.

        Raises ModelCorrupt when the probability is NaN.
        """
        end = token == self.vocabulary.end_id
        text = "" if end else self.vocabulary.texts[token]
        forced = bool(text) and self.spell.startswith(text)
        self.spell = self.spell[len(text) :] if forced else ""
        self.probabilities.append(1.0 if forced else checked(probability))
        self.closings.append(() if forced else closings)
        self.confidence *= self.probabilities[-1]
        self.ended |= end
        if not end:
            self.ids.append(token)

    def copy(self) -> "Hypothesis":
        """A copy that can be written on by itself."""
        copied = copy(self)
        copied.ids, copied.probabilities, copied.closings = [*self.ids], [*self.probabilities], [*self.closings]
        return copied

    @property
    def foresees(self) -> bool:
        """Whether the next token tells more about the characters after the cursor."""
        return self.foreseen is not None and not self.foreseen.is_known

    @property
    def is_full(self) -> bool:
        """Whether no token may follow."""
        return self.ended or len(self.ids) >= self.capacity

    @property
    def limits(self) -> SlotLimits:
        """Those of the slot after the accepted tokens."""
        return SlotLimits(self.spell, self.multiline, self.banned.get(len(self.ids)))

    def take_rank(self) -> int:
        """The rank of the next token: of the first one that has nothing to spell `rank`, of all others 0."""
        if self.spell:
            return 0
        rank, self.rank = self.rank, 0
        return rank

    def reopen(self, position: int) -> None:
        """Take back every token from the one that writes the character at `position` of the text.

        That token is banned there. A hypothesis that was reopened before ends there instead.
        """
        at = self._token_at(position + len(self.begun))
        self.ended = bool(self.banned)
        self.banned[at] = self.ids[at]
        self._shorten(at)
        self.spell = self.begun[len(self._spelled(at)) :]

    def end_at(self, position: int) -> None:
        """End before the character at `position` of the text, with the last token that writes the one before it."""
        text = self._spelled(len(self.ids))[: position + len(self.begun)]
        tokens = next(n for n in range(self.known, len(self.ids) + 1) if self._spelled(n).startswith(text))
        self._shorten(tokens)
        self.ended, self.limit = True, position

    def _shorten(self, tokens: int) -> None:
        """Take back all tokens after the first `tokens`."""
        self.ids, self.probabilities = self.ids[:tokens], self.probabilities[:tokens]
        self.closings, self.confidence = self.closings[:tokens], math.prod(self.probabilities)

    def probability(self, tokens: int) -> float:
        """The probability that the first `tokens` are right; one more than are accepted counts the end marker."""
        return math.prod(self.probabilities[:tokens])

    @property
    def prospect(self) -> float:
        """The confidence, or that of the text up to the first mark that the last token closes something with."""
        if not self.closings or not self.closings[-1]:
            return self.confidence
        (_, first), *_ = self.closings[-1]
        return max(self.confidence, self.probability(len(self.closings) - 1) * first)

    def sure_tokens(self, least: float) -> int:
        """The most tokens from the left, the end marker counted, that are right with at least this probability."""
        return sum(probability >= least for probability in accumulate(self.probabilities, mul))

    def view(self, after: Iterable[SlotView] = ()) -> tuple[SlotView, ...]:
        """The accepted tokens after the cursor, and what stands after them, for displaying the decoding."""
        written = zip(self.ids[self.known :], self.probabilities[self.known :], strict=False)
        accepted = (SlotView(self.vocabulary.texts[token], "committed", sure) for token, sure in written)
        views, hidden = list[SlotView](), len(self.begun)
        for seen in (*accepted, *after):
            views.append(replace(seen, text=seen.text[hidden:]) if hidden else seen)
            hidden = max(0, hidden - len(seen.text))
        return tuple(views if self.multiline else map(_on_its_line, views))

    def _token_at(self, position: int) -> int:
        """The first token that writes the character at this position of the tokens' text; the last if none does."""
        places = range(self.known, len(self.ids))
        return next((place for place in places if len(self._spelled(place + 1)) > position), len(self.ids) - 1)

    def _spelled(self, tokens: int) -> str:
        """The text of the first `tokens`, without the known ones."""
        return self.vocabulary.spelled(self.ids[self.known : tokens])


def checked(probability: float) -> float:
    """The probability, or its logarithm. Raises ModelCorrupt when it is NaN."""
    if math.isnan(probability):
        raise ModelCorrupt("the weights compute NaN; fetch the model again, or set mercury.model to null")
    return probability


def _on_its_line(view: SlotView) -> SlotView:
    """The slot without a line break that its token joins to the text."""
    return replace(view, text=view.text.partition("\n")[0].rstrip("\r")) if "\n" in view.text else view
