"""The probability of a server's changes, from the token probabilities in its reply.

llama-server and chats list them as `logprobs.content` or `completion_probabilities`, vLLM as `logprobs.token_logprobs`.
"""

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import accumulate
from math import exp, isnan
from typing import Any

from mercury_engine.text.lines import equal_ends, lines_of


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
