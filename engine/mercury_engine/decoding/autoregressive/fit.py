"""Fit: how well a text suits the lines below the gap, by the log-probability of these lines after it.

- Several lines end after the line that makes the lines below most likely. A model seldom ends such a text where it
  should: it stops after one statement, or writes the lines below once more in other words. So it writes on, and each
  line's end is judged. The text's own log-probability, added with any weight, made the choice no better.
- Of several candidates for one line the best fit comes first. A model with a gap format is surest of what that
  suggests, often a text after which the lines below make no sense. So the fit is the sum of two log-probabilities: of
  the text in the gap, and of the text with the lines below it, written left to right without seeing them. The gap is
  also filled with the lines below inside the format, as in pretraining, which finds other texts. Without a gap format
  ranking gained nothing.

Figures: docs/decisions/denoising.md.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from mercury_engine.api import Control, FillRequest
from mercury_engine.decoding.autoregressive.speculation import Speculation
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.context_reader import ContextReader
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis, hypotheses_of
from mercury_engine.kv_cache.cache import GapContext
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.text.brackets import has_open_bracket
from mercury_engine.text.common_prefix import common_prefix

MOST_ENDS = 8
"""Ends that are judged, from the first; each takes a pass over the lines below."""

LINES_BELOW, MOST_BELOW_CHARS = 2, 160
"""Most lines of the text below that are read, not counting blank ones, and most characters."""

OPENS_BLOCK = ":{"
"""Characters at the end of a line after which whole lines follow."""


class Fit:
    """Judges the fills of one model."""

    def __init__(self, contexts: ContextReader, rules: GapRules, speculation: Speculation) -> None:
        self._contexts, self._rules, self._speculation = contexts, rules, speculation
        self._network = contexts.cache.network

    def judge(self, hypotheses: list[Hypothesis], context: GapContext, control: Control) -> ForwardSteps[None]:
        """End or rank the fills of a request where that is worth passes of its own; ranking adds a candidate."""
        if hypotheses[0].writes_on:
            for hypothesis in hypotheses:
                yield from self._end_at_best(hypothesis, context)
        elif self._rules.has_markers and is_ranked(hypotheses[0].request):
            yield from self._rank(hypotheses, context, control)

    def _end_at_best(self, hypothesis: Hypothesis, context: GapContext) -> ForwardSteps[None]:
        """End the hypothesis at its best end, and note how well the text below fits there.

        It stays as it is where it has no end, or nothing stands below.
        """
        below, text = lines_below(hypothesis.below), hypothesis.text()
        if not below:
            return
        known, read, best, most = hypothesis.known, hypothesis.known, None, -math.inf
        verifier = Verifier(self._network, context, hypothesis.ids[:known])
        try:
            for end in islice(line_ends(text, hypothesis.ended), MOST_ENDS):
                spelled = self._rules.tokenizer.encode(hypothesis.begun + text[:end] + below)
                ids = hypothesis.ids[:known] + spelled
                shared = common_prefix(ids, hypothesis.ids)
                if shared < read:  # the tokens of what was read before are others with this text after them
                    continue
                verifier.push(ids[read:shared])
                read = shared
                [nats] = yield from verifier.score([ids[shared:]])
                if nats > most:
                    best, most = end, nats
        finally:  # when time is up, the best so far
            if best is not None:
                hypothesis.end_at(best)
                hypothesis.fit = most

    def _rank(self, hypotheses: list[Hypothesis], context: GapContext, control: Control) -> ForwardSteps[None]:
        """Add what the model writes as it was pretrained, and note how well each text fits."""
        request = hypotheses[0].request
        cut = self._contexts.cut(request)
        whole = yield from self._contexts.read_whole(request, cut.read)
        context.tokens_read += whole.tokens_read
        other, *_ = hypotheses_of(request, self._rules, cut)
        yield from self._speculation.write([other], whole, replace(control, on_step=None))
        hypotheses.append(other)
        encode = self._contexts.tokenizer.encode
        texts = [cut.spell + each.text() for each in hypotheses]
        ends = self._rules.stop_tokens(request.follows, request.multiline, "")
        assert ends is not None, "a gap format has a token that ends the gap"
        in_gap = Verifier(self._network, context, cut.known)
        scores = yield from in_gap.score([encode(text) for text in texts], ends.tokens)
        above = yield from self._contexts.read_above(request, cut.read)
        context.tokens_read += above.tokens_read
        left_to_right, below = Verifier(self._network, above, cut.known), lines_below("".join(request.suffix))
        written = yield from left_to_right.score([encode(text + below) for text in texts])
        for hypothesis, *nats in zip(hypotheses, scores, written, strict=True):
            hypothesis.fit = sum(nats)


def writes_on(request: FillRequest) -> bool:
    """Whether a fill passes over the model's own end: whole lines of code that the user requested.

    Its end is looked for afterwards if lines stand below; if none do, it ends with the definition that it is in.
    """
    if not request.multiline or not is_asked(request):
        return False
    above, suffix = "".join((*request.far[-1:], request.near)), "".join(request.suffix)
    line = above.rpartition("\n")[2].rstrip()
    if line and line[-1] not in OPENS_BLOCK:
        return False
    return bool(lines_below(suffix)) or (not suffix.strip() and above.rstrip().rpartition("\n")[2][:1].isspace())


def is_ranked(request: FillRequest) -> bool:
    """Whether candidates are ranked: those of one line of code that the user requested, with lines below."""
    if request.candidates < 2 or request.multiline or not is_asked(request):
        return False
    return bool(lines_below("".join(request.suffix)))


def is_asked(request: FillRequest) -> bool:
    """Whether the user requested code, and all of it."""
    return not request.prose and request.utility is None and request.max_steps is None


def line_ends(text: str, is_whole: bool) -> Iterator[int]:
    """The ends of a text's lines where no bracket is open; that of its last line only if the text `is_whole`."""
    position = 0
    *lines, last = text.split("\n")
    for line in [*lines, last] if is_whole else lines:
        end = position + len(line.removesuffix("\r"))
        position += len(line) + 1
        if line.strip() and not has_open_bracket(text[:end]):
            yield end


def lines_below(suffix: str) -> str:
    """The line break after a gap and the first lines below it; empty if text follows on its line, or none below."""
    rest, broken, below = suffix.partition("\n")
    if rest.strip() or not broken:
        return ""
    lines = below.split("\n")
    kept = [number for number, line in enumerate(lines) if line.strip()][:LINES_BELOW]
    return (rest + "\n" + "\n".join(lines[: kept[-1] + 1]))[:MOST_BELOW_CHARS] if kept else ""
