"""Where a fill of several lines ends: after the line that makes the text below the gap likeliest.

A model seldom ends such a text where it should: it stops after one statement, or writes the lines below once more in
other words. So it writes on, and each line's end is judged by the log-probability of the lines below after it. The
text's own log-probability, added with any weight, made the choice no better (docs/decisions/denoising.md).
"""

import math
from collections.abc import Iterator
from itertools import islice

from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.context_reader import GapContext
from mercury_engine.decoding.gap_rules import GapRules
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network
from mercury_engine.text.brackets import has_open_bracket
from mercury_engine.text.common_prefix import common_prefix

MOST_ENDS = 8
"""Most ends that are judged, from the first; each is a pass over the lines below."""

LINES_BELOW = 2
MOST_BELOW_CHARS = 160
"""What is read of the text below: so many lines, blank ones not counted, and so many characters."""

OPENS_BLOCK = ":{"
"""Ends of lines after which whole lines follow."""


def end_at_best(hypothesis: Hypothesis, context: GapContext, network: Network, rules: GapRules) -> ForwardSteps[None]:
    """End the hypothesis at its best end, and note how well the text below fits there.

    It stays as it is where it has no end, or nothing stands below.
    """
    below, text = lines_below(hypothesis.below), rules.text(hypothesis)
    if not below:
        return
    known, read, best, most = hypothesis.known, hypothesis.known, None, -math.inf
    verifier = Verifier(network, context, hypothesis.ids[:known])
    try:
        for end in islice(line_ends(text, hypothesis.ended), MOST_ENDS):
            spelled = rules.tokenizer.encode(hypothesis.begun + text[:end] + below)
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


def writes_on(request: FillRequest) -> bool:
    """Whether a fill passes over the model's own end: whole lines of code that somebody asked for.

    Its end is looked for afterwards if lines stand below; if none do, it ends with the definition that it is in.
    """
    if not request.multiline or not is_asked(request):
        return False
    above, suffix = "".join((*request.far[-1:], request.near)), "".join(request.suffix)
    line = above.rpartition("\n")[2].rstrip()
    if line and line[-1] not in OPENS_BLOCK:
        return False
    return bool(lines_below(suffix)) or (not suffix.strip() and above.rstrip().rpartition("\n")[2][:1].isspace())


def is_asked(request: FillRequest) -> bool:
    """Whether somebody asked for code, and for all of it."""
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
