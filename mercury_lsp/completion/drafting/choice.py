"""Which of several lines is the draft: the text around the cursor, and how candidates rank."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mercury_lsp.completion.drafting.changes import lines_of
from mercury_lsp.completion.drafting.lines import LineBelow
from mercury_lsp.completion.drafting.matching import Prefix, before_suffix, match, renaming_between
from mercury_lsp.context.context import CompletionContext

NEAR_LINES = 16
"""So many lines on either side of the cursor are compared without being looked up."""

Rank = tuple[int, int, int, int]
"""The greater wins: 1 for a line near the cursor, nearness or 1 for the same document, last edit, last change."""


class Candidate(NamedTuple):
    """A line that the cursor's line may go on like."""

    text: str
    rank: Rank
    """Among equal matches."""
    names: tuple[str, str] | None = None
    """The line above it and the one above the cursor: how they differ tells of names."""


@dataclass(frozen=True, slots=True)
class CursorLines:
    """Lines around that of the cursor, with indentation, nearest first; blank ones are left out."""

    above: list[str]
    below: list[str]

    @classmethod
    def of(cls, context: CompletionContext) -> "CursorLines":
        """Those that the context's blocks next to the cursor hold, `NEAR_LINES` at most."""
        before = "".join((*context.far[-2:], context.near))
        after = "".join(context.suffix[:3])
        above = lines_of(before[: max(0, len(before) - len(context.line_prefix))])
        return cls(above[::-1][:NEAR_LINES], lines_of(after[len(context.line_suffix) :])[:NEAR_LINES])

    def candidates(self) -> Iterator[Candidate]:
        """All of them."""
        for lines, step in ((self.above, 1), (self.below, -1)):
            for at, line in enumerate(lines):
                upper = lines[at + step] if 0 <= at + step < len(lines) else None
                names = (upper, self.above[0]) if upper and self.above else None
                yield Candidate(line.strip(), (1, -at, 0, 0), names)

    def comes_next(self, text: str) -> bool:
        """Whether a line is already there, below the cursor."""
        return bool(self.below) and self.below[0].strip() == text

    def line_like_below(self, typed: str) -> str:
        """What lacks on a line of blanks, judged by the nearest line like the one above it, but for names.

        The line below that one must show what the other names mean; else nothing.
        """
        pairs = [*zip(self.above[2:], self.above[1:], strict=False), *zip(self.below, self.below[1:], strict=False)]
        for like, below in pairs:
            renaming = renaming_between(like, self.above[0])
            renamed = renaming.apply(below) if renaming is not None else below
            if renamed != below and not self.comes_next(renamed.strip()):
                return LineBelow.of(like, renamed).completes(typed, self.above[0])
        return ""


def best_rest(context: CompletionContext, prefix: Prefix, candidates: Iterable[Candidate]) -> str:
    """How the best candidate goes on, as far as it fits before the rest of the cursor's line; empty if none does."""
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
