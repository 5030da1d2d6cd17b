"""Gaps cut out of real files, laid out exactly as the server lays out the text around a cursor."""

import random
from dataclasses import dataclass

from mercury_engine.chunks import split
from mercury_engine.codec import Codec
from mercury_engine.layout import around
from mercury_engine.training.corpus import SourceFile

PATH_KEPT = 0.7
"""Share of gaps that see the file's path."""

_COMMENT = {"python": "#", "shell": "#", "yaml": "#", "toml": "#", "lua": "--", "html": "<!--", "css": "/*"}


@dataclass(frozen=True, slots=True)
class Gap:
    """Tokens around and inside one gap. `far` and `suffix` are blocks that are read alone."""

    far: list[tuple[int, ...]]
    near: list[int]
    suffix: list[tuple[int, ...]]
    target: list[int]
    truth: str
    kind: str


@dataclass(frozen=True, slots=True)
class Spans:
    """How a gap is chosen: shares of the kinds and the budgets of context in characters."""

    rest_of_line: float = 0.6
    random_span: float = 0.25
    prefix_chars: int = 800
    suffix_chars: int = 400


class GapSampler:
    """Draws gaps from files; same generator, same gaps."""

    def __init__(self, codec: Codec, rng: random.Random, spans: Spans | None = None) -> None:
        self.codec, self.rng, self.spans = codec, rng, spans or Spans()
        self._encoded: dict[str, tuple[int, ...]] = {}

    def gaps(self, file: SourceFile, count: int) -> list[Gap]:
        """Up to count gaps near one another, so that they share context blocks."""
        text = file.text.replace("\r\n", "\n")
        if len(text) < 200:
            return []
        middle = self.rng.randrange(len(text))
        low, high = max(0, middle - 500), min(len(text) - 1, middle + 500)
        drawn = (self.gap(file, text, *self._span(text, self.rng.randrange(low, high))) for _ in range(3 * count))
        found = [gap for gap in drawn if gap.target]
        if len(self._encoded) > 20_000:
            self._encoded.clear()
        return found[:count]

    def gap(self, file: SourceFile, text: str, start: int, end: int, kind: str) -> Gap:
        """The gap text[start:end] with the context the server would give for a cursor at start."""
        before, after = text[:start], text[end:]
        window = before[-2 * self.spans.prefix_chars :]
        if len(window) < len(before):
            window = window[window.find("\n") + 1 :]
        chunks = split(window + after[: 2 * self.spans.suffix_chars])
        far, near, suffix = around(chunks, len(window), self.spans.prefix_chars, self.spans.suffix_chars)
        if self.rng.random() < PATH_KEPT:
            far.insert(0, f"{_COMMENT.get(file.language, '//')} path: {file.path}\n")
        cut = self.codec.cut(near)
        target = self.codec.encode(cut.spell + text[start:end])
        return Gap(
            [self._block(b) for b in far],
            cut.read + cut.known,
            [self._block(b) for b in suffix],
            target,
            text[start:end],
            kind,
        )

    def _block(self, text: str) -> tuple[int, ...]:
        if text not in self._encoded:
            self._encoded[text] = tuple(self.codec.encode(text))
        return self._encoded[text]

    def _span(self, text: str, at: int) -> tuple[int, int, str]:
        kind = self.rng.random()
        end_of_line = text.find("\n", at)
        end_of_line = len(text) if end_of_line < 0 else end_of_line
        if kind < self.spans.rest_of_line:
            return at, end_of_line, "rest_of_line"
        if kind < self.spans.rest_of_line + self.spans.random_span:
            return at, min(len(text), at + self.rng.randint(2, 50)), "random_span"
        start = text.rfind("\n", 0, at) + 1
        start += len(text[start:end_of_line]) - len(text[start:end_of_line].lstrip())
        end = end_of_line
        for _ in range(self.rng.randint(0, 3)):
            end = text.find("\n", end + 1) if text.find("\n", end + 1) > 0 else end
        return start, max(start, end), "lines"
