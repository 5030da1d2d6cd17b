"""The engine and its baselines as gap fillers, functions from gap to fill, so that every suite runs them alike.

- `mercury_filler`: the engine under test, with the server's requests;
- `once_filler`: the same, which writes every gap once and cuts that by each utility that is asked for;
- `reader_filler`: its reader alone, decoding left to right from the plain text before the gap, read in one causal run;
- `copying`: no model, the continuation of the longest repeated context.
"""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from mercury_engine.api import Control, Fill, FillRequest
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.decoding.options import AutoregressiveOptions
from mercury_engine.decoding.results import fill_of
from mercury_engine.errors import RequestError
from mercury_engine.kv_cache.cache import GapContext
from mercury_engine.prompt.layout import PREFIX_CHARS, SUFFIX_CHARS
from mercury_engine.text.common_prefix import common_prefix
from mercury_engine.utility import Utility

from mercury_lab.engine import Engine, finished
from mercury_lab.evaluation.gaps import Gap
from mercury_lab.training.window import window

GapFiller = Callable[[Gap], Fill]

MIN_REPEATED_CHARS = 6
"""Characters of context that must be repeated before `copying` copies."""

HALF_CONFIDENCE_CHARS = 16
"""Repeated characters, not counting blanks, at which `copying` reports a confidence of one half; not calibrated."""

TYPED_CHARS = 12
"""Characters typed since the text was read, in `typing_filler`: about four tokens."""

EVERYTHING = Utility(wrong_cost=0.0, least=2.0, min_probability=0.05)
"""Goes on with a fill as far as any utility that is measured."""

REMEMBERED_GAPS = 256
"""Gaps whose hypotheses are kept: those of a line."""


def mercury_filler(engine: Engine) -> GapFiller:
    """The engine itself."""
    return lambda gap: engine.fill(gap.request)


def once_filler(engine: Engine) -> GapFiller:
    """The engine, at the cost of one fill for every utility by which a gap is asked for."""
    write = engine.decoder.write

    @lru_cache(REMEMBERED_GAPS)
    def written(request: FillRequest) -> tuple[list[Hypothesis], GapContext | None]:
        return finished(write(request, Control()), engine.reader)

    def fill(gap: Gap) -> Fill:
        started = time.perf_counter()
        hypotheses, context = written(replace(gap.request, utility=EVERYTHING))
        for each in hypotheses:
            each.request = gap.request
        found = fill_of(hypotheses, context)
        return replace(found, elapsed=time.perf_counter() - started)

    return fill


def typing_filler(engine: Engine) -> GapFiller:
    """The engine after it has read the text as it was before the last characters were typed."""

    def fill(gap: Gap) -> Fill:
        engine.fill(replace(gap.request, near=gap.request.near[:-TYPED_CHARS], max_steps=0))
        return engine.fill(gap.request)

    return fill


def left_to_right(engine: Engine) -> Engine:
    """An engine on the same network that reads plain blocks and drafts nothing: one token per step."""
    if engine.reader.config.masked_attention is not None:
        raise RequestError(f"{engine.name} sees all of its text at once and cannot decode left to right")
    options = AutoregressiveOptions(lookahead=0)
    return Engine(replace(engine.parts, options=options, markers=None, edit_family=None))


def reader_filler(engine: Engine) -> GapFiller:
    """The reader alone, for gaps of one line; it reads as much text before the gap as the fill on both sides."""
    alone = left_to_right(engine)

    def fill(gap: Gap) -> Fill:
        end = len(gap.prefix)
        far, near, _ = window(gap.prefix, end, end, PREFIX_CHARS + SUFFIX_CHARS, 0)
        request = replace(gap.request, near="".join(far) + near, far=(), suffix=(), lookup_text=(), multiline=False)
        return alone.fill(request)

    return fill


def copying(gap: Gap) -> Fill:
    """Copy the rest of the line after the longest repeat, on either side, of the text before the cursor."""
    started = time.perf_counter()
    before, after = "".join((*gap.request.far, gap.request.near)), "".join(gap.request.suffix)
    longest, text, tail = 0, "", before[-MIN_REPEATED_CHARS:]
    for source in (after, before):  # among equally long repeats, the nearest one before the cursor wins
        for found in re.finditer(f"(?={re.escape(tail)})", source) if tail else ():
            end = found.start() + len(tail)
            is_elsewhere = source is after or end < len(before)
            size = common_prefix(reversed(source[:end]), reversed(before)) if is_elsewhere else 0
            if size >= max(longest, MIN_REPEATED_CHARS):
                longest, text = size, source[end:].partition("\n")[0]
    seen = len("".join(before[len(before) - longest :].split()))
    confidence = seen / (seen + HALF_CONFIDENCE_CHARS)
    sure = bool(text) and confidence >= gap.request.give_up_below
    return Fill(text if sure else "", confidence, 0, time.perf_counter() - started, is_finished=True)
