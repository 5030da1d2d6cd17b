"""Places of a text to be edited, and the text that is searched for them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from mercury_lsp.documents.document import Snapshot

SEARCH_REACH_CHARS = 100_000
"""Characters on either side of the change that are searched."""

MAX_NEAR = 20
"""Most places examined on either side of a change, at about 0.1 ms each, in every open document."""


@dataclass(frozen=True, slots=True)
class EditSite:
    """Text at an offset, and its replacement."""

    start: int
    old: str
    new: str

    @property
    def end(self) -> int:
        """End offset of the old text."""
        return self.start + len(self.old)


def text_around(at: int, snapshot: Snapshot) -> tuple[int, str]:
    """The whole lines that are searched around an offset, and where they begin."""
    source = snapshot.source
    first, _ = source.line_bounds(at - SEARCH_REACH_CHARS)
    return first, source.slice(first, source.offset_at(source.line_of(at + SEARCH_REACH_CHARS) + 1, 0))


def near(starts: Sequence[int], at: int) -> slice:
    """The nearest places on either side of an offset, as a slice of their sorted starts."""
    middle = bisect_right(starts, at)
    return slice(max(0, middle - MAX_NEAR), middle + MAX_NEAR)


def below_first(sites: Sequence[EditSite], at: int) -> list[EditSite]:
    """The sites below an offset from the top down, then the others from the bottom up; `sites` must be sorted."""
    below = [site for site in sites if site.start > at]
    return below + [site for site in reversed(sites) if site.start <= at]


def joined(sites: Sequence[EditSite], snapshot: Snapshot) -> EditSite:
    """Sites, sorted, as one."""
    old, new, at = "", "", sites[0].start
    for site in sites:
        between = snapshot.slice(at, site.start)
        old, new, at = old + between + site.old, new + between + site.new, site.end
    return EditSite(sites[0].start, old, new)
