"""Turns hypotheses into fills: cuts them where they are worth most, calibrates and ranks the candidates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mercury_engine.api import PART_OF_A_CHARACTER, Check, Fill
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.truncation import closing_of, ends_whole, is_word_character, truncated, word_start
from mercury_engine.kv_cache.cache import GapContext
from mercury_engine.text.brackets import CLOSING_MARKS
from mercury_engine.utility import Utility

CERTAIN = 0.9
"""Probability from which a name is shown though the model is unsure how its expression goes on."""

EVEN_PROBABILITY = 0.5
"""Probability below which a text is more likely wrong than right."""

CLOSING_CHARS = 12
"""What a cut may be worth beyond its own length: it is finished, or brackets and quotes are closed after it."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The beginning of a fill, as it may be shown."""

    text: str
    confidence: float
    """Product of its tokens' probabilities, before calibration."""
    is_finished: bool = False
    """Nothing was cut off."""


def fill_of(hypotheses: Sequence[Hypothesis], context: GapContext | None, check: Check | None = None) -> Fill:
    """The fill that the hypotheses make; an empty one where the context could not be read in time.

    `check`: see `Control`.
    """
    if context is None:
        return Fill("", 0.0, steps=0)
    return ranked([Cutter(each).fill(context, check) for each in hypotheses], [each.fit for each in hypotheses])


def ranked(fills: Sequence[Fill], fits: Sequence[float]) -> Fill:
    """The fill that fits best, or the most confident of those that fit alike, with the others in that order.

    The first fill is the best guess everywhere. Another fill is dropped if a different text begins with it: a candidate
    that gave up at the token meant to set it apart is as confident as what all of them have in common.
    """
    texts = [fill.text for fill in fills]
    different: dict[str, Fill] = {}
    for fill, _ in sorted(zip(fills, fits, strict=True), key=lambda pair: (-pair[1], -pair[0].confidence)):
        is_part = fill is not fills[0] and any(t != fill.text and t.startswith(fill.text) for t in texts)
        if fill.text and not is_part:
            different.setdefault(fill.text, fill)
    first, *others = [*different.values()] or fills[:1]
    return replace(first, others=tuple(others))


class Cutter:
    """Finds where a hypothesis may be cut, and where it is cut best."""

    def __init__(self, hypothesis: Hypothesis) -> None:
        self._hypothesis, self._request, self._calibration = (
            hypothesis,
            hypothesis.request,
            hypothesis.rules.calibration,
        )
        self._whole = hypothesis.text()
        """All that the model has written."""
        self._line_suffix = hypothesis.follows.partition("\n")[0]

    def fill(self, context: GapContext, check: Check | None) -> Fill:
        """The fill of the best cut."""
        hypothesis, cut = self._hypothesis, self.closed(self.best(), check)
        return Fill(
            text=cut.text,
            confidence=self._calibration.kept(cut.confidence),
            steps=hypothesis.steps,
            is_finished=cut.is_finished,
            unsure_from=self.unsure_from(cut),
            tokens_read=context.tokens_read,
            tokens_unread=context.tokens_unread,
            prompt_tokens=context.tokens,
            tokens=len(hypothesis.ids) - hypothesis.known,
            next_characters=() if hypothesis.foreseen is None else hypothesis.foreseen.likeliest(),
        )

    def best(self) -> Cut:
        """The most useful beginning, or without a utility the longest one that is sure enough; perhaps empty."""
        utility = self._request.utility
        return self._sure_enough() if utility is None else self._most_useful(utility)

    def after(self, tokens: int, is_whole: bool = True) -> Cut:
        """What may be shown of the first tokens; one more than are accepted counts the end marker.

        What is shown of code ends where an expression does (`truncation.ends_whole`) if it `is_whole`, else after any
        word, as prose does. Nothing is shown of tokens whose bytes are no characters: a model that denoises in any
        order may reveal half of one.
        """
        hypothesis, probability = self._hypothesis, self._hypothesis.probability(tokens)
        if hypothesis.ended and tokens >= len(hypothesis.probabilities):
            text, is_finished = self._whole, True
        else:
            text, is_finished = self._unfinished(tokens, is_whole)
        return Cut("", probability) if PART_OF_A_CHARACTER in text else Cut(text, probability, is_finished)

    def closed(self, cut: Cut, check: Check | None) -> Cut:
        """The cut with the brackets and marks that alone follow it in its line, if the document's syntax allows them.

        They do not count against its confidence: where they are unsure, the syntax leaves little choice.
        """
        if cut.is_finished or self._request.prose or not cut.text:
            return cut
        text = cut.text + closing_of(self._rest(cut.text), self._line_suffix)
        is_wrong = check is not None and text != cut.text and check(text + "\n") is not None
        return cut if is_wrong else replace(cut, text=text)

    def unsure_from(self, cut: Cut) -> int | None:
        """Where the text becomes more likely wrong than right, by the calibrated probability of everything before."""
        hypothesis, even = self._hypothesis, self._calibration.raw(EVEN_PROBABILITY)
        if cut.confidence >= even:
            return None
        sure_ids = hypothesis.ids[hypothesis.known : hypothesis.sure_tokens(even)]
        sure_text = hypothesis.rules.tokenizer.decode(sure_ids).rstrip(PART_OF_A_CHARACTER)
        characters = max(0, len(sure_text) - len(hypothesis.begun))
        return word_start(cut.text, characters) if characters < len(cut.text) else None

    def _sure_enough(self) -> Cut:
        """The longest beginning that is right with at least the probability that the request gives up below."""
        tokens = self._hypothesis.sure_tokens(self._calibration.raw(self._request.give_up_below))
        lengths = range(tokens, self._hypothesis.known, -1)
        return next((cut for cut in map(self.after, lengths) if cut.text), None) or self._rest_of_name(lengths)

    def _most_useful(self, utility: Utility) -> Cut:
        """The beginning that is worth most, the longest of equals; the empty one if none is worth anything."""
        best, most = Cut("", 1.0), 0.0
        for tokens, closing, product in self._ends():
            probability = self._calibration.kept(product)
            text = self._hypothesis.text(tokens) + closing
            gain, loss = len(text) + CLOSING_CHARS, (1 - probability) * utility.wrong_cost
            if probability < utility.min_probability or probability * gain - loss <= most:
                continue  # finding out what of it may be shown takes much longer
            cut = self._within_token(text, product) if closing else self.after(tokens)
            if (value := utility.of(probability, cut.text, cut.is_finished)) > most and cut.text:
                best, most = cut, value
        return best if best.text else self._certain(utility)

    def _ends(self) -> Iterator[tuple[int, str, float]]:
        """Where a fill may be cut, from its end on: tokens, what the next one closes of them, and how sure that is."""
        hypothesis = self._hypothesis
        for tokens in range(len(hypothesis.probabilities), hypothesis.known, -1):
            sure = hypothesis.probability(tokens)
            closings = () if self._request.prose else (*hypothesis.closings, ())[tokens]
            yield from ((tokens, closing, sure * share) for closing, share in reversed(closings))
            yield tokens, "", sure

    def _rest_of_name(self, lengths: range) -> Cut:
        """The first cut that only completes the name at the cursor, whatever the model would go on with."""
        if is_word_character(self._request.near[-1:]):
            for tokens in lengths:
                cut = self.after(tokens, is_whole=False)
                if cut.text and all(map(is_word_character, cut.text)):
                    return cut
        return Cut("", 1.0)

    def _certain(self, utility: Utility) -> Cut:
        """The rest of a half-typed name if the model is certain of it, worth a look though more may follow."""
        hypothesis, calibration = self._hypothesis, self._calibration
        tokens = min(hypothesis.sure_tokens(calibration.raw(CERTAIN)), len(hypothesis.ids))
        cut = self._rest_of_name(range(tokens, hypothesis.known, -1))
        return cut if utility.is_enough(calibration.kept(cut.confidence), cut.text, cut.is_finished) else Cut("", 1.0)

    def _unfinished(self, tokens: int, is_whole: bool) -> tuple[str, bool]:
        """What may be shown of tokens that others may follow, and whether nothing was cut off."""
        hypothesis, text = self._hypothesis, self._hypothesis.text(tokens)
        if not self._whole.startswith(text.rstrip()):  # later tokens have told that it leaves the gap
            return "", False
        if text.strip() and text.rstrip(" \t").endswith("\n"):
            return text.rstrip(), True
        after, ids = None, hypothesis.ids
        if tokens < len(hypothesis.probabilities):
            after = "" if tokens == len(ids) else hypothesis.rules.texts[ids[tokens]]
        shown = truncated(text, after)
        if self._request.utility is None and self._request.give_up_below == 0:
            return shown, False
        if self._is_cut_off(shown):
            shown = shown.rpartition("\n")[0].rstrip()
        return shown if self._request.prose or not is_whole or self._ends_whole(shown) else "", False

    def _within_token(self, text: str, product: float) -> Cut:
        """What may be shown of a text that ends within a token, after what that closes: all of it, or nothing."""
        is_whole = self._whole.startswith(text) and not self._is_cut_off(text) and self._ends_whole(text)
        return Cut(text if is_whole else "", product, is_finished=self._rest(text).startswith("\n"))

    def _rest(self, shown: str) -> str:
        """How the model goes on after the shown text."""
        return self._whole.removeprefix(shown) + "\n" * self._hypothesis.ended

    def _is_cut_off(self, text: str) -> bool:
        """Whether a text has several lines, of which only whole ones are shown, and the last one says more."""
        return "\n" in text and not self._rest(text).lstrip(CLOSING_MARKS + " \t\r").startswith("\n")

    def _ends_whole(self, text: str) -> bool:
        """Whether a text ends where an expression of its code does (`truncation.ends_whole`)."""
        return ends_whole(text, self._rest(text), self._hypothesis.line, self._line_suffix)
