"""What else could fill a gap, each a function from gap to fill, so that every suite runs them alike.

- `mercury`: the engine under test, asked as the server asks it;
- `reader`: its reader alone, decoded left to right from the plain text before the gap, read in one causal run;
- `copy`: no model at all, the continuation of the longest repeated context;
- `FillInTheMiddle` (fim.py): a causal model in its own fill-in-the-middle format.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from mercury_engine.api import Fill, FillRequest
from mercury_engine.engine import Engine
from mercury_engine.evaluation.gaps import Gap
from mercury_engine.evaluation.judge import fitted
from mercury_engine.loading import ModelParts
from mercury_engine.prompt.layout import PREFIX_CHARS, SUFFIX_CHARS, window
from mercury_engine.text.common_prefix import common_prefix

Fills = Callable[[Gap], Fill]

LEAST_REPEATED = 6
"""Characters of context that must be repeated before anything is copied."""

HALF_SURE = 16
"""Repeated characters, blanks not counted, at which copying calls itself half sure; not calibrated."""

MOST_LINES = 6
"""Lines after which the reader alone stops looking for the end of a gap of several lines."""


def mercury(engine: Engine, max_steps: int | None = None) -> Fills:
    """The engine itself, with at most so many steps a fill."""
    return lambda gap: engine.fill(replace(gap.request, max_steps=max_steps))


def left_to_right(engine: Engine) -> Engine:
    """The same reader without any drafts: one token a step."""
    rule = replace(engine.denoiser.rule, decides="reader", drafts="none")
    return Engine(ModelParts(engine.path, engine.reader, None, engine.tokenizer, rule, engine.calibration))


def reader(engine: Engine) -> Fills:
    """The reader alone, with as much text before the gap as the fill gets on both sides together."""
    alone = left_to_right(engine)

    def fill(gap: Gap) -> Fill:
        end = len(gap.prefix)
        far, near, _ = window(gap.prefix, end, end, PREFIX_CHARS + SUFFIX_CHARS, 0)
        request = replace(gap.request, near="".join(far) + near, far=(), suffix=(), lookup_text=(), multiline=False)
        return _line_by_line(alone, request, gap) if gap.request.multiline else alone.fill(request)

    return fill


def _line_by_line(alone: Engine, request: FillRequest, gap: Gap) -> Fill:
    """Line after line until the one that follows the gap: the only way a reader can tell where several lines end."""
    fills: list[Fill] = []
    text = ""
    while len(fills) < MOST_LINES and fitted(text, gap.request) == text:
        fills.append(alone.fill(replace(request, near=request.near + text)))
        text += fills[-1].text + "\n"
    confidence = 1.0
    for fill in fills:
        confidence *= fill.confidence
    return Fill(text.rstrip("\n"), confidence, sum(f.steps for f in fills), sum(f.elapsed for f in fills))


def copy(gap: Gap) -> Fill:
    """The rest of the line behind the place that repeats the longest context before the cursor, on either side."""
    started = time.perf_counter()
    before, after = "".join((*gap.request.far, gap.request.near)), "".join(gap.request.suffix)
    longest, text = 0, ""
    for source in (after, before):  # of equally long repeats the nearest before the cursor counts
        for end in _lookups(source, before[-LEAST_REPEATED:]):
            is_elsewhere = source is after or end < len(before)
            size = common_prefix(reversed(source[:end]), reversed(before)) if is_elsewhere else 0
            if size >= max(longest, LEAST_REPEATED):
                longest, text = size, source[end:].partition("\n")[0]
    seen = len("".join(before[len(before) - longest :].split()))
    confidence = seen / (seen + HALF_SURE)
    sure = bool(text) and confidence >= gap.request.give_up_below
    return Fill(text if sure else "", confidence, 0, time.perf_counter() - started)


def _lookups(source: str, tail: str) -> Iterator[int]:
    """Ends of all places where the tail stands."""
    at = source.find(tail) if tail else -1
    while at >= 0:
        yield at + len(tail)
        at = source.find(tail, at + 1)
