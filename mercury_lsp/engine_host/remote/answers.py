"""Limits of a server's answers: their length, their characters, the range of their numbers."""

from dataclasses import replace
from math import isfinite
from unicodedata import category

from mercury_engine.api import (
    MAX_REGION_CHARS,
    MAX_REGION_LINES,
    MAX_SLOTS,
    Fill,
    FillRequest,
    Rewrite,
    RewriteRequest,
    SlotView,
)
from mercury_engine.decoding.gap_rules import SLOTS
from mercury_engine.decoding.truncation import truncated
from mercury_engine.text.lines import lines_of

from mercury_lsp.engine_host.remote.wire import Answer, Request

MAX_TOKEN_CHARS = 16
"""Most characters a token of an answer may have, on average; code has three to four."""

MAX_LABEL_CHARS = 200

MAX_COUNT = 1_000_000
"""Most tokens or steps that an answer may claim."""


def slots_of(request: FillRequest) -> int:
    """Most tokens of a fill."""
    return 0 if request.max_steps == 0 else min(request.max_slots, SLOTS[request.effort])


def max_chars(request: FillRequest) -> int:
    return slots_of(request) * MAX_TOKEN_CHARS


def cleaned(text: str, known: str = "\t\n") -> str:
    """The text without halves of surrogate pairs, and without control characters but the `known` ones."""
    if text.isascii() and text.isprintable():
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return "".join(each for each in whole if category(each) != "Cc" or each in known)


def label(text: str) -> str:
    """A line for people to read."""
    return " ".join(cleaned(text[:MAX_LABEL_CHARS]).split())


def bounded(answer: Answer, request: Request) -> Answer:
    """The answer as it may be used. Raises ValueError for numbers out of range."""
    if not isfinite(answer.elapsed) or answer.elapsed < 0:
        raise ValueError("elapsed is not a duration")
    if isinstance(answer, Rewrite):
        assert isinstance(request, RewriteRequest)
        return _rewrite(answer, request)
    assert isinstance(request, FillRequest)
    others = tuple(_fill(replace(each, others=()), request) for each in answer.others[: max(0, request.candidates)])
    return replace(_fill(answer, request), others=others)


def shown_slots(canvas: tuple[SlotView, ...]) -> tuple[SlotView, ...]:
    """A step's canvas as it may be drawn."""
    return tuple(replace(slot, text=cleaned(slot.text[: MAX_SLOTS * MAX_TOKEN_CHARS])) for slot in canvas[:MAX_SLOTS])


def _fill(fill: Fill, request: FillRequest) -> Fill:
    _checked(fill.confidence, fill.steps, fill.tokens_read, fill.tokens_unread, fill.prompt_tokens, fill.tokens)
    limit, unsure = max_chars(request), fill.unsure_from
    text = cleaned(fill.text[:limit])
    if len(fill.text) > limit:
        return replace(fill, text=truncated(text, None), is_finished=False, unsure_from=None)
    return replace(fill, text=text, unsure_from=None if unsure is None else len(cleaned(fill.text[: max(0, unsure)])))


def _rewrite(rewrite: Rewrite, request: RewriteRequest) -> Rewrite:
    lines = len(lines_of(request.text))
    if len(rewrite.hunks) > MAX_REGION_LINES + 1 or len(rewrite.text) > 2 * MAX_REGION_CHARS:
        raise ValueError("it rewrites more than the region")
    for hunk in rewrite.hunks:
        if not 0 <= hunk.start <= hunk.end <= lines or len(hunk.text) > 2 * MAX_REGION_CHARS:
            raise ValueError("a hunk is not in the region")
        _checked(hunk.probability)
    _checked(0.0, rewrite.steps, rewrite.tokens_read)
    known = "\t\n" + request.text  # what stays in a line may be odd
    hunks = tuple(replace(hunk, text=cleaned(hunk.text, known)) for hunk in rewrite.hunks)
    return replace(rewrite, text=cleaned(rewrite.text, known), hunks=hunks)


def _checked(probability: float, *counts: int) -> None:
    if not 0 <= probability <= 1 or not all(0 <= count <= MAX_COUNT for count in counts):
        raise ValueError("a number is out of range")
