"""A server's answers: the limits of what they hold, and how probable the server says their tokens are.

llama-server and chats list token probabilities as `logprobs.content` or `completion_probabilities`, vLLM as
`logprobs.token_logprobs`.
"""

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import accumulate
from math import exp, isfinite, isnan
from typing import Any
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
from mercury_engine.decoding.hypothesis import SLOTS
from mercury_engine.decoding.truncation import truncated
from mercury_engine.text.lines import equal_ends, lines_of

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


class Told:
    """A written text, and its tokens' log-probabilities."""

    def __init__(self, text: str, tokens: Sequence[tuple[bytes, float]]) -> None:
        self._text = text
        self._starts = [0, *accumulate(len(token) for token, _ in tokens)]
        """Where each token begins and the last one ends, in bytes; tokens may follow the text."""
        self._nats = [nats for _, nats in tokens]

    @classmethod
    def of(cls, reply: Any, text: str) -> "Told | None":
        """A reply's token probabilities; None if it has none for this text."""
        with suppress(ValueError, TypeError, KeyError, OverflowError, AttributeError):
            tokens = _tokens(reply)
            if tokens and b"".join(token for token, _ in tokens).startswith(text.encode()):
                return cls(text, tokens)
        return None

    def of_lines(self, new: Sequence[str]) -> dict[int, int]:
        """Where lines of an answer stand in the text, by their numbers."""
        written = lines_of(self._text)
        starts = [0, *accumulate(map(len, written))]
        before, after = ([line.rstrip("\n") for line in lines] for lines in (written, new))
        blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        return {block.b + at: starts[block.a + at] for block in blocks for at in range(block.size + (not block.size))}

    def of_change(self, old: str, new: str, start: int | None) -> float:
        """The probability of what differs in `new`, which stands at `start`; 1.0 if it was not found."""
        if start is None:
            return 1.0
        first, last = equal_ends(old, new)
        begin, end = (len(self._text[: start + at].encode()) for at in (first, max(first, len(new) - last)))
        tokens = slice(bisect_right(self._starts, begin) - 1, bisect_right(self._starts, max(begin, end - 1)))
        return exp(sum(self._nats[tokens]))


def log_probabilities(reply: Any) -> list[float]:
    """Those of a reply's tokens; none if it does not tell them. Raises ValueError, TypeError and OverflowError."""
    match reply:
        case {"choices": [{"logprobs": {"content": [*entries]}}, *_]} | {"completion_probabilities": [*entries]}:
            found = [each["logprob"] for each in entries if "logprob" in each]
        case {"choices": [{"logprobs": {"token_logprobs": [*found]}}, *_]}:
            pass
        case _:
            found = []
    nats = [*map(float, found)]
    if any(map(isnan, nats)):
        raise ValueError("a log-probability is not a number")
    return [min(0.0, each) for each in nats]


def _tokens(reply: Any) -> list[tuple[bytes, float]]:
    """A reply's tokens. Raises what a wrong type raises, and ValueError."""
    match reply:
        case {"choices": [{"logprobs": {"content": [*entries]}}, *_]} | {"completion_probabilities": [*entries]}:
            texts = [*map(_bytes, entries)]
        case {"choices": [{"logprobs": {"tokens": [*tokens]}}, *_]}:
            texts = [str(token).encode("utf-8", "replace") for token in tokens]
        case _:
            texts = []
    return [*zip(texts, log_probabilities(reply), strict=True)]


def _bytes(entry: Any) -> bytes:
    return bytes(entry["bytes"]) if isinstance(entry.get("bytes"), list) else str(entry["token"]).encode()
