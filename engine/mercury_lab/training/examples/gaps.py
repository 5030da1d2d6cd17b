"""Cut gaps out of real files."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mercury_engine.prompt.layout import path_block
from mercury_engine.text.brackets import outside_strings

from mercury_lab.training.data.sources import SourceFile
from mercury_lab.training.examples.snippets import snippet_blocks

PATH_SHARE = 0.7
"""Share of windows that include the file's path."""

SNIPPETS_SHARE = 0.2
"""Share of windows that include blocks of other files of their package, if there are any."""

FILE_START_SHARE = 0.15
"""Share of windows placed at the start of their file, in addition to those there by chance."""

WINDOW_REACH_CHARS = 500
"""Characters from the middle of a window within which its gaps start."""

MIN_FILE_CHARS = 200
"""Characters of a file; shorter ones have no gaps."""

Span = tuple[int, int]
"""Start and end of a gap in its text."""


@dataclass(frozen=True, slots=True)
class GapSettings:
    """How gaps are chosen: the shares of the kinds, and the context budgets in characters."""

    rest_of_line: float = 0.6
    random_span: float = 0.25
    in_brackets: float = 0.0
    """Up to the bracket of the same line that closes what the gap is in, or else to the line's end."""
    prefix_chars: int = 800
    suffix_chars: int = 400


class GapSampler:
    """Samples gaps from files; equal generators give equal gaps."""

    def __init__(self, rng: random.Random, spans: GapSettings | None = None) -> None:
        self.rng, self.spans = rng, spans or GapSettings()

    def places(
        self, file: SourceFile, count: int, others: Sequence[SourceFile] = ()
    ) -> tuple[str, list[str], Iterator[Span]] | None:
        """The file's text, its first blocks and up to `count` spans of one window; None if the file is too short."""
        text = file.text.replace("\r\n", "\n")
        if len(text) < MIN_FILE_CHARS:
            return None
        end = min(len(text), WINDOW_REACH_CHARS) if self.rng.random() < FILE_START_SHARE else len(text)
        middle = self.rng.randrange(end)
        low, high = max(0, middle - WINDOW_REACH_CHARS), min(len(text) - 1, middle + WINDOW_REACH_CHARS)
        first = first_blocks(file, text[low:high], others, self.rng)
        return text, first, (self._span(text, self.rng.randrange(low, high)) for _ in range(count))

    def _span(self, text: str, at: int) -> Span:
        kind = self.rng.random()
        end_of_line = text.find("\n", at)
        end_of_line = len(text) if end_of_line < 0 else end_of_line
        if kind < self.spans.rest_of_line:
            return at, end_of_line
        if kind < self.spans.rest_of_line + self.spans.random_span:
            return at, min(len(text), at + self.rng.randint(2, 50))
        if kind < self.spans.rest_of_line + self.spans.random_span + self.spans.in_brackets:
            closing = closing_bracket(text[at:end_of_line])
            return at, end_of_line if closing is None else at + closing
        start = text.rfind("\n", 0, at) + 1
        start += len(text[start:end_of_line]) - len(text[start:end_of_line].lstrip())
        end = end_of_line
        for _ in range(self.rng.randint(0, 3)):
            end = text.find("\n", end + 1) if text.find("\n", end + 1) > 0 else end
        return start, max(start, end)


def closing_bracket(text: str) -> int | None:
    """The position of the first bracket that closes one opened before the text; None if there is none."""
    return next((at for at, _, depth in outside_strings(text) if depth < 0), None)


def first_blocks(file: SourceFile, around: str, others: Sequence[SourceFile], rng: random.Random) -> list[str]:
    """Snippets of other files that match the text around, and the path; each only in some windows."""
    snippets = rng.random() < SNIPPETS_SHARE
    blocks = snippet_blocks(around, others, rng) if snippets and others else []
    return [*blocks, path_block(file.path, file.language)] if rng.random() < PATH_SHARE else blocks
