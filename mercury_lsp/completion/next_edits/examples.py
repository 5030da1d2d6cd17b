"""Hunks as examples of a change: the old text, the new text, and what surrounds them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from textwrap import dedent

from mercury_engine.text.common_prefix import common_prefix
from mercury_engine.text.lines import equal_ends, lines_of

from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.documents.chunked_text import with_line_feeds

TOKEN = re.compile(r"\w+|[^\w\s]")

EXAMPLES = 4
"""Number of latest hunks that serve as examples, for rules and for a model's edits."""

MAX_LINES = 200
"""Most lines of a hunk, before and after together: comparing 1,300 brackets takes more than a second."""


@dataclass(frozen=True, slots=True)
class Example:
    """An old and a new text, and what is before and after them now: tokens of the line, or lines."""

    hunk: Hunk
    old: str
    new: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    """Lines come without the blanks at their ends, texts of whole lines without common indentation."""
    line: int
    """Line of the current document at which the new text begins."""
    column: int | None
    """None if whole lines changed."""
    lines: tuple[str, str] = ("", "")
    """The line before and after the change, if it changed within one line."""
    margins: tuple[str, str, str] = ("", "", "")
    """For whole lines, the indentation of the nearest line with text above, of the new lines, and of that below."""

    @property
    def key(self) -> tuple[str, str, bool]:
        """What two examples of the same change have in common."""
        return self.old, self.new, self.column is None

    def around(self, other: "Example") -> tuple[list[str], list[str]]:
        """What is before and after both examples."""
        before = common_prefix(self.before[::-1], other.before[::-1])
        after = common_prefix(self.after, other.after)
        return [*self.before[len(self.before) - before :]], [*self.after[:after]]


@lru_cache  # the latest ones are requested at every key, for every open document
def examples(hunk: Hunk) -> tuple[Example, ...]:
    """What a hunk changed: line by line where the number of lines stayed, and whole lines."""
    return tuple(_examples(hunk))


def _examples(hunk: Hunk) -> Iterator[Example]:
    line_break = "\r\n" if "\r\n" in "".join((*hunk.around, hunk.after)) else "\n"
    old, new = (_ended(lines_of(text), line_break) for text in (hunk.before, hunk.after))
    if len(old) + len(new) > MAX_LINES:
        return
    around = [lines_of(text) for text in hunk.around]
    above, below = ([line.strip() for line in lines] for lines in around)
    bare = [line.strip() for line in old], [line.strip() for line in new]
    whole = [("replace", 0, len(old), 0, len(new))]
    is_whole = not (old and new) or (len(old) == len(new) == 1 and bare[0] != bare[1])  # as while typing
    for kind, a, b, c, d in whole if is_whole else SequenceMatcher(None, *bare, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        if b - a == d - c:
            for number, pair in enumerate(zip(old[a:b], new[c:d], strict=True)):
                yield _span_in_line(hunk, *pair, hunk.line + c + number)
        if b - a != d - c or b - a > 1:
            was, now = _dedented("".join(old[a:b])), _dedented("".join(new[c:d]))
            beside = tuple(above + bare[1][:c]), tuple(bare[1][d:] + below)
            over, under = nearest((*around[0], *new[:c])[::-1]), nearest((*new[d:], *around[1]))
            margins = margin([over]), margin(new[c:d]), margin([under])
            yield Example(hunk, was, now, *beside, line=hunk.line + c, column=None, margins=margins)


def _ended(lines: Sequence[str], line_break: str) -> list[str]:
    """The lines, each with a break: a document's last line may lack one, but the change may recur above other lines."""
    return [line if line.endswith("\n") else line + line_break for line in lines]


def nearest(lines: Sequence[str]) -> str:
    """The first line with text; empty if there is none."""
    return next(filter(str.strip, lines), "")


def margin(lines: Sequence[str]) -> str:
    """The blanks that all lines with text begin with."""
    blanks = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()] or [""]
    return min(blanks)[: common_prefix(min(blanks), max(blanks))]


def _dedented(text: str) -> str:
    """Lines without common indentation. CR is removed first, because `dedent` takes that of an empty line for text."""
    plain = dedent(with_line_feeds(text))
    return plain.replace("\n", "\r\n") if "\r\n" in text else plain


def _span_in_line(hunk: Hunk, old: str, new: str, line: int) -> Example:
    """What changed between two lines, in whole tokens; if only one side has tokens, with the blanks around them."""
    ours, theirs = list(TOKEN.finditer(old)), list(TOKEN.finditer(new))
    first, last = equal_ends([each[0] for each in ours], [each[0] for each in theirs])
    is_gap = first + last in (len(ours), len(theirs))
    was, now = (_span(text, tokens, first, last, is_gap) for text, tokens in ((old, ours), (new, theirs)))
    around = tuple(each[0] for each in ours[:first]), tuple(each[0] for each in ours[len(ours) - last :])
    removed, made, lines = old[slice(*was)], new[slice(*now)], (old.strip(), new.strip())
    if removed.strip():  # blanks that stay are no part of it
        kept = min(common_prefix(removed, made), len(removed) - len(removed.lstrip()))
        removed, made, now = removed[kept:], made[kept:], (now[0] + kept, now[1])
    return Example(hunk, removed, made, *around, line, column=now[0], lines=lines)


def _span(line: str, tokens: Sequence[re.Match[str]], first: int, last: int, is_gap: bool) -> tuple[int, int]:
    """The span of a line without its `first` and `last` tokens; if `is_gap`, the blanks between these."""
    if not is_gap:
        return tokens[first].start(), tokens[len(tokens) - last - 1].end()
    start = tokens[first - 1].end() if first else len(line) - len(line.lstrip())
    end = tokens[len(tokens) - last].start() if last else len(line.rstrip())
    return min(start, end), end  # of a line of blanks only, its start
