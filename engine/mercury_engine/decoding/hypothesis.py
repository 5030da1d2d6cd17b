"""A hypothesis: what a decoder has accepted of one fill, token by token from the left.

Accepted tokens are final; only `reopen` takes some away again. What stands after them is the decoder's own: nothing
for a causal model, a canvas of masked slots for a masked diffusion model.

Dimensions: W wanted rows, K candidates.
"""

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import mul

from mercury_engine.api import MAX_SLOTS, Check, Effort, FillRequest, SlotView
from mercury_engine.decoding.gap_rules import GapRules, SlotLimits, StopTokens
from mercury_engine.errors import ModelCorrupt
from mercury_engine.models.row_answers import RowAnswers
from mercury_engine.prompt.tokenizer import PrefixCut
from mercury_engine.text.ends import definition_end, find_end, first_line_end, overrun, thought_end
from mercury_engine.utility import typed_characters

SLOTS: dict[Effort, int] = {"instant": 8, "low": 16, "medium": 32, "high": MAX_SLOTS}
"""Longest fill by effort, in tokens."""

MOST_CHARS_AHEAD = 12
"""A fill goes on while a text this many characters longer, as sure as what is accepted, would be worth showing.

In 3,941 replayed keystrokes this keeps 99 % of the characters saved and takes 6 % more steps than the fixed gate before
it; without a bound it would be 59 %.
"""

BELOW_CHARS = 1200
"""Characters after the gap whose lines a fill of several lines must not repeat."""

BLOCKS_ABOVE = 4
"""Blocks above the cursor's that are searched for the header of the definition that a fill must not leave."""

LEAST_PROBABILITY = 0.2
"""Least probability of a next character that is worth preparing for; preparing costs about a pass."""

Closings = tuple[tuple[str, float], ...]
"""What a token closes: the marks that it begins with, from the first one to all, with the probability of all tokens
that begin so. The belief in a quote is divided between `"`, `")` and `"),`."""


class NextCharacters:
    """The probabilities of the characters after the cursor, as the first tokens of a fill tell."""

    def __init__(self, texts: list[str]) -> None:
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


@dataclass(slots=True)
class Hypothesis:
    """The accepted tokens of one fill, and the gap that they fill."""

    rules: GapRules
    request: FillRequest
    ids: list[int]
    """The accepted tokens; those that are known from the start come first."""
    capacity: int
    """Most tokens, the known ones included."""
    begun: str = ""
    """Text before the cursor that the first tokens have to spell."""
    rank: int = 0
    """Rank of the first token that has nothing to spell: 0 is the likeliest. Sets candidates apart."""
    writes_on: bool = False
    """Whether the model's own end is passed over, because the end is looked for afterwards."""
    limit: int | None = None
    """Most characters of the text; None: no limit."""
    foreseen: NextCharacters | None = None
    """The characters that may follow the cursor, if they are wanted."""
    fit: float = -math.inf
    """How well the text fits, in nats, if its end was searched for or it was ranked (`fit`)."""
    confidence: float = 1.0
    """Product of `probabilities`."""
    ended: bool = False
    banned: dict[int, int] = field(default_factory=dict)
    """The token that proved wrong, by its place."""
    steps: int = 0
    known: int = field(init=False)
    """Number of tokens that were known at the start."""
    spell: str = field(init=False)
    """The part of `begun` that is still to be spelled."""
    probabilities: list[float] = field(init=False)
    """Of each token when it was accepted, and of the end marker if the fill has ended with one."""
    closings: list[Closings] = field(init=False)
    """Of each of them what its token closes, as far as the decoder knows."""
    follows: str = field(init=False)
    """The text directly after the gap."""
    below: str = field(init=False)
    """The text after the gap, as far as a fill of several lines must not repeat it."""
    line: str = field(init=False)
    """The cursor's line before the gap."""
    above: str | None = field(init=False)
    """The text above that line if a fill of several lines ends with its definition; None if with a thought."""

    def __post_init__(self) -> None:
        request = self.request
        self.known, self.spell = len(self.ids), self.begun
        self.probabilities, self.closings = [1.0] * self.known, [()] * self.known
        self.follows, self.below = request.follows, ""
        self.above, _, self.line = request.near.rpartition("\n")
        if request.multiline:
            self.below = "".join(request.suffix)[:BELOW_CHARS]
            above = "".join((*request.far[-BLOCKS_ABOVE:], self.above))
            self.above = above if request.utility is None else None

    def text(self, tokens: int | None = None) -> str:
        """The text that the accepted tokens put after the cursor, up to where it leaves the gap.

        `tokens`: only the text of this many tokens from the left.
        """
        whole = self._spelled(tokens)
        text = whole[len(self.begun) :] if whole.startswith(self.begun) else ""
        return text[: self._end(text)]

    @property
    def leaves_gap(self) -> bool:
        """Whether the last token continues after the gap, breaks its only line, or begins another thought."""
        return self._end(self._spelled()[len(self.begun) :]) is not None

    @property
    def is_open(self) -> bool:
        """Whether another step makes sense."""
        if self.is_full or self._is_hopeless():
            return False
        return self.request.max_steps is None or self.steps < self.request.max_steps

    @property
    def is_full(self) -> bool:
        """Whether no token may follow."""
        return self.ended or len(self.ids) >= self.capacity

    @property
    def limits(self) -> SlotLimits:
        """Those of the slot after the accepted tokens."""
        return SlotLimits(self.spell, self.request.multiline, self.banned.get(len(self.ids)))

    @property
    def foresees(self) -> bool:
        """Whether the next token tells more about the characters after the cursor."""
        return self.foreseen is not None and not self.foreseen.is_known

    @property
    def prospect(self) -> float:
        """The confidence, or that of the text up to the first mark that the last token closes something with."""
        if not self.closings or not self.closings[-1]:
            return self.confidence
        (_, first), *_ = self.closings[-1]
        return max(self.confidence, self.probability(len(self.closings) - 1) * first)

    def stop_tokens(self) -> StopTokens | None:
        """The tokens that would end the fill here; None where it cannot end."""
        return None if self.writes_on else self.rules.stop_tokens(self.follows, self.request.multiline, self.text())

    def accept(self, token: int, probability: float, closings: Closings = ()) -> None:
        """Add a token, or end the fill; a token that spells `begun` does not count against the confidence.

        Raises ModelCorrupt when the probability is NaN.
        """
        end = token == self.rules.end_id
        text = "" if end else self.rules.texts[token]
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
        text = self._spelled()[: position + len(self.begun)]
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

    def repaired(self, check: Check | None) -> bool:
        """Whether tokens of an ended fill were taken back because its text breaks the document's syntax."""
        wrong = check(self.text()) if check else None
        if wrong is not None:
            self.reopen(wrong)
        return wrong is not None

    def sure_tokens(self, least: float) -> int:
        """The most tokens from the left, the end marker counted, that are right with at least this probability."""
        return sum(probability >= least for probability in accumulate(self.probabilities, mul))

    def view(self, after: Iterable[SlotView] = ()) -> tuple[SlotView, ...]:
        """The accepted tokens after the cursor, and what stands after them, for displaying the decoding."""
        written = zip(self.ids[self.known :], self.probabilities[self.known :], strict=False)
        accepted = (SlotView(self.rules.texts[token], "committed", sure) for token, sure in written)
        views, hidden = list[SlotView](), len(self.begun)
        for seen in (*accepted, *after):
            views.append(replace(seen, text=seen.text[hidden:]) if hidden else seen)
            hidden = max(0, hidden - len(seen.text))
        return tuple(views if self.request.multiline else map(_on_its_line, views))

    def _token_at(self, position: int) -> int:
        """The first token that writes the character at this position of the tokens' text; the last if none does."""
        places = range(self.known, len(self.ids))
        return next((place for place in places if len(self._spelled(place + 1)) > position), len(self.ids) - 1)

    def _spelled(self, tokens: int | None = None) -> str:
        """The text of the first `tokens`, or of all, without the known ones."""
        return self.rules.tokenizer.decode(self.ids[self.known : tokens])

    def _end(self, text: str) -> int | None:
        """Where a text goes beyond what the fill is for; None if it does not."""
        ends = [find_end(text, self.follows), self.limit]
        if not self.request.multiline:
            ends.append(first_line_end(text))
        elif "\n" in text:
            above = self.above
            ends.append(thought_end(text, self.line) if above is None else definition_end(text, self.line, above))
            ends.append(overrun(text, self.line, self.below))
        return min((end for end in ends if end is not None), default=None)

    def _is_hopeless(self) -> bool:
        """Whether nothing that begins with the accepted tokens can be worth showing, or is sure enough."""
        calibration, utility = self.rules.calibration, self.request.utility
        if self.confidence < calibration.raw(self.request.give_up_below):
            return True
        if utility is None:
            return False
        longest = typed_characters(self.text()) + MOST_CHARS_AHEAD
        return self.prospect < calibration.raw(utility.least_probability(longest))


def hypotheses_of(request: FillRequest, rules: GapRules, cut: PrefixCut, writes_on: bool = False) -> list[Hypothesis]:
    """The hypotheses that a request asks for, each with another first token."""
    capacity = len(cut.known) + min(request.max_slots, SLOTS[request.effort])
    ranks = range(max(1, request.candidates))
    return [Hypothesis(rules, request, [*cut.known], capacity, cut.spell, rank, writes_on) for rank in ranks]


def checked(probability: float) -> float:
    """The probability, or its logarithm. Raises ModelCorrupt when it is NaN."""
    if math.isnan(probability):
        raise ModelCorrupt("the weights compute NaN; fetch the model again, or set mercury.model to null")
    return probability


def _on_its_line(view: SlotView) -> SlotView:
    """The slot without a line break that its token joins to the text."""
    return replace(view, text=view.text.partition("\n")[0].rstrip("\r")) if "\n" in view.text else view
