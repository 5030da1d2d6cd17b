"""Turns hypotheses into fills: cuts them where they are worth most, calibrates and ranks the candidates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mercury_engine.api import PART_OF_A_CHARACTER, Check, Fill, FillRequest
from mercury_engine.decoding.context_reader import GapContext
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.truncation import is_word_character, truncated, word_start
from mercury_engine.text.boundaries import CLOSING_MARKS, closing_of, ends_whole

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


def fill_of(
    request: FillRequest,
    hypotheses: Sequence[Hypothesis],
    context: GapContext | None,
    rules: GapRules,
    check: Check | None = None,
) -> Fill:
    """The fill that the hypotheses make; an empty one where the context could not be read in time.

    `check`: see `Control`.
    """
    if context is None:
        return Fill("", 0.0, steps=0)
    fills = [_fill_from(request, each, rules, context, check) for each in hypotheses]
    return ranked(fills, [each.fit for each in hypotheses])


def _fill_from(
    request: FillRequest, hypothesis: Hypothesis, rules: GapRules, context: GapContext, check: Check | None
) -> Fill:
    cut = most_useful(hypothesis, request, rules) if request.utility else sure_enough(hypothesis, request, rules)
    cut = closed(cut, hypothesis, request, rules, check)
    return Fill(
        text=cut.text,
        confidence=rules.calibration.kept(cut.confidence),
        steps=hypothesis.steps,
        is_finished=cut.is_finished,
        unsure_from=_unsure_from(hypothesis, cut, rules),
        tokens_read=context.cached.tokens_read,
        tokens_unread=context.cached.tokens_unread,
        prompt_tokens=context.tokens,
        tokens=len(hypothesis.ids) - hypothesis.known,
        next_characters=() if hypothesis.foreseen is None else hypothesis.foreseen.likeliest(),
    )


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


def sure_enough(hypothesis: Hypothesis, request: FillRequest, rules: GapRules) -> Cut:
    """The longest beginning that is right with at least the probability that the request gives up below."""
    tokens = hypothesis.sure_tokens(rules.calibration.raw(request.give_up_below))
    lengths = range(tokens, hypothesis.known, -1)
    cuts = (cut_after(hypothesis, request, each, rules) for each in lengths)
    return next((cut for cut in cuts if cut.text), None) or _rest_of_name(hypothesis, request, lengths, rules)


def _rest_of_name(hypothesis: Hypothesis, request: FillRequest, lengths: range, rules: GapRules) -> Cut:
    """The first cut that only completes the name at the cursor, whatever the model would go on with."""
    if is_word_character(request.near[-1:]):
        for tokens in lengths:
            cut = cut_after(hypothesis, request, tokens, rules, is_whole=False)
            if cut.text and all(map(is_word_character, cut.text)):
                return cut
    return Cut("", 1.0)


def most_useful(hypothesis: Hypothesis, request: FillRequest, rules: GapRules) -> Cut:
    """The beginning that is worth most, the longest of equals; the empty one if none is worth anything."""
    assert request.utility is not None
    utility, best, most = request.utility, Cut("", 1.0), 0.0
    for tokens, closing, product in _ends(hypothesis, request):
        probability = rules.calibration.kept(product)
        text = rules.text(hypothesis, tokens) + closing
        gain, loss = len(text) + CLOSING_CHARS, (1 - probability) * utility.wrong_cost
        if probability < utility.min_probability or probability * gain - loss <= most:
            continue  # finding out what of it may be shown takes much longer
        if closing:
            cut = _cut_closed(hypothesis, request, text, product, rules)
        else:
            cut = cut_after(hypothesis, request, tokens, rules)
        if (value := utility.of(probability, cut.text, cut.is_finished)) > most and cut.text:
            best, most = cut, value
    return best if best.text else _certain(hypothesis, request, rules)


def _certain(hypothesis: Hypothesis, request: FillRequest, rules: GapRules) -> Cut:
    """The rest of a half-typed name that the model is certain of, if it is worth a look though more would follow."""
    assert request.utility is not None
    tokens = min(hypothesis.sure_tokens(rules.calibration.raw(CERTAIN)), len(hypothesis.ids))
    cut = _rest_of_name(hypothesis, request, range(tokens, hypothesis.known, -1), rules)
    kept = rules.calibration.kept(cut.confidence)
    return cut if request.utility.is_enough(kept, cut.text, cut.is_finished) else Cut("", 1.0)


def _ends(hypothesis: Hypothesis, request: FillRequest) -> Iterator[tuple[int, str, float]]:
    """Where a fill may be cut, from its end on: tokens, what the next one closes of them, and how sure that is."""
    for tokens in range(len(hypothesis.probabilities), hypothesis.known, -1):
        sure = hypothesis.probability(tokens)
        closings = () if request.prose else (*hypothesis.closings, ())[tokens]
        yield from ((tokens, closing, sure * share) for closing, share in reversed(closings))
        yield tokens, "", sure


def cut_after(hypothesis: Hypothesis, request: FillRequest, tokens: int, rules: GapRules, is_whole: bool = True) -> Cut:
    """What may be shown of the first tokens; one more than are accepted counts the end marker.

    What is shown of code ends where an expression does if it `is_whole` (`text.boundaries`), else after any word, as
    prose does. Nothing is shown
    of tokens whose bytes are no characters: a model that denoises in any order may reveal half of one.
    """
    cut = _cut_after(hypothesis, request, tokens, rules, is_whole)
    return Cut("", cut.confidence) if PART_OF_A_CHARACTER in cut.text else cut


def _cut_after(hypothesis: Hypothesis, request: FillRequest, tokens: int, rules: GapRules, is_whole: bool) -> Cut:
    whole, probability = rules.text(hypothesis), hypothesis.probability(tokens)
    if hypothesis.ended and tokens >= len(hypothesis.probabilities):
        return Cut(whole, probability, is_finished=True)
    text, after = rules.text(hypothesis, tokens), None
    if not whole.startswith(text.rstrip()):  # later tokens have told that it leaves the gap
        return Cut("", probability)
    if text.strip() and text.rstrip(" \t").endswith("\n"):
        return Cut(text.rstrip(), probability, is_finished=True)
    if tokens < len(hypothesis.probabilities):
        ids = hypothesis.ids
        after = "" if tokens == len(ids) else hypothesis.vocabulary.texts[ids[tokens]]
    shown = truncated(text, after)
    if request.utility is None and request.give_up_below == 0:
        return Cut(shown, probability)
    rest = _rest(hypothesis, shown, whole)
    if _is_cut_off(shown, rest):
        shown = shown.rpartition("\n")[0].rstrip()
        rest = _rest(hypothesis, shown, whole)
    may_end = request.prose or not is_whole or _ends_whole(request, shown, rest)
    return Cut(shown if may_end else "", probability)


def _cut_closed(hypothesis: Hypothesis, request: FillRequest, text: str, product: float, rules: GapRules) -> Cut:
    """What may be shown of a text that ends within a token, after what that closes: all of it, or nothing."""
    whole = rules.text(hypothesis)
    rest = _rest(hypothesis, text, whole)
    is_whole = whole.startswith(text) and not _is_cut_off(text, rest) and _ends_whole(request, text, rest)
    return Cut(text if is_whole else "", product, is_finished=rest.startswith("\n"))


def closed(cut: Cut, hypothesis: Hypothesis, request: FillRequest, rules: GapRules, check: Check | None) -> Cut:
    """The cut with the brackets and marks that alone follow it in its line, if the document's syntax allows them.

    They do not count against its confidence: where they are unsure, the syntax leaves little choice.
    """
    if cut.is_finished or request.prose or not cut.text:
        return cut
    text = cut.text + closing_of(
        _rest(hypothesis, cut.text, rules.text(hypothesis)), request.follows.partition("\n")[0]
    )
    is_wrong = check is not None and text != cut.text and check(text + "\n") is not None
    return cut if is_wrong else replace(cut, text=text)


def _rest(hypothesis: Hypothesis, shown: str, whole: str) -> str:
    """How the model goes on after the shown text; `whole` is all that it has written."""
    return whole.removeprefix(shown) + "\n" * hypothesis.ended


def _is_cut_off(text: str, rest: str) -> bool:
    """Whether a text has several lines, of which only whole ones are shown, and the last one says more."""
    return "\n" in text and not rest.lstrip(CLOSING_MARKS + " \t\r").startswith("\n")


def _ends_whole(request: FillRequest, text: str, rest: str) -> bool:
    """Whether a text ends where an expression of its code does (`text.boundaries`)."""
    return ends_whole(text, rest, request.near.rpartition("\n")[2], request.follows.partition("\n")[0])


def _unsure_from(hypothesis: Hypothesis, cut: Cut, rules: GapRules) -> int | None:
    """Where the text becomes more likely wrong than right, by the calibrated probability of everything before."""
    even, text = rules.calibration.raw(EVEN_PROBABILITY), cut.text
    if cut.confidence >= even:
        return None
    tokens = hypothesis.sure_tokens(even)
    sure_text = rules.tokenizer.decode(hypothesis.ids[hypothesis.known : tokens]).rstrip(PART_OF_A_CHARACTER)
    characters = max(0, len(sure_text) - len(hypothesis.begun))
    return word_start(text, characters) if characters < len(text) else None
