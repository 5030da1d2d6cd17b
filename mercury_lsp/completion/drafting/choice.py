"""Chooses the draft among candidate lines: reads the lines around the cursor and ranks the candidates."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mercury_lsp.completion.drafting.changed_range import lines_of
from mercury_lsp.completion.drafting.lines import LineBelow
from mercury_lsp.completion.drafting.matching import Prefix, before_suffix, match, renaming_between
from mercury_lsp.context.context import CompletionContext

NEARBY_LINES = 16
"""Lines on either side of the cursor that are compared without an index lookup."""

Rank = tuple[int, int, int, int]
"""The greatest wins: 1 if near the cursor, nearness or 1 if in the same document, last edit, line stamp."""


class Candidate(NamedTuple):
    """A line that may show how the cursor's line continues."""

    text: str
    rank: Rank
    """Decides among equal matches."""
    names: tuple[str, str] | None = None
    """The line above it and the line above the cursor; their differences reveal renamings."""


@dataclass(frozen=True, slots=True)
class CursorLines:
    """The lines around the cursor's line, with indentation, nearest first; blank ones are left out."""

    above: list[str]
    below: list[str]

    @classmethod
    def of(cls, context: CompletionContext) -> "CursorLines":
        """The lines in the context's blocks next to the cursor, at most `NEARBY_LINES` on either side."""
        before = "".join((*context.far[-2:], context.near))
        after = "".join(context.suffix[:3])
        above = lines_of(before[: max(0, len(before) - len(context.line_prefix))])
        return cls(above[::-1][:NEARBY_LINES], lines_of(after[len(context.line_suffix) :])[:NEARBY_LINES])

    def candidates(self) -> Iterator[Candidate]:
        """All the lines as candidates."""
        for lines, step in ((self.above, 1), (self.below, -1)):
            for at, line in enumerate(lines):
                upper = lines[at + step] if 0 <= at + step < len(lines) else None
                names = (upper, self.above[0]) if upper and self.above else None
                yield Candidate(line.strip(), (1, -at, 0, 0), names)

    def comes_next(self, text: str) -> bool:
        """Whether the line below the cursor is this text already."""
        return bool(self.below) and self.below[0].strip() == text

    def line_like_below(self, typed: str) -> str:
        """The draft for a blank line: the line below the nearest one that equals the line above, up to renaming.

        The line below that one must contain a renamed word; otherwise empty.
        """
        pairs = [*zip(self.above[2:], self.above[1:], strict=False), *zip(self.below, self.below[1:], strict=False)]
        for like, below in pairs:
            renaming = renaming_between(like, self.above[0])
            renamed = renaming.apply(below) if renaming is not None else below
            if renamed != below and not self.comes_next(renamed.strip()):
                return LineBelow.of(like, renamed).completes(typed, self.above[0])
        return ""


def best_continuation(context: CompletionContext, prefix: Prefix, candidates: Iterable[Candidate]) -> str:
    """How the best candidate continues, as far as it fits before the line's suffix; empty if none does."""
    under_cursor = (context.line_prefix + context.line_suffix).strip()
    best: tuple[tuple[int, Rank], str] | None = None
    for candidate in candidates:
        if candidate.text == under_cursor:
            continue
        least = best[0][0] + (candidate.rank <= best[0][1]) if best is not None else 0
        found = match(prefix, candidate.text, least, candidate.names)
        if found is not None and (rest := before_suffix(found.rest, context.line_suffix)):
            best = (found.reach, candidate.rank), rest
    return best[1] if best else ""
