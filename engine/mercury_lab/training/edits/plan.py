"""A plan: all sites of one edit, and their text after it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

TextSpan = tuple[int, int]

MAX_SITES = 40

_BETWEEN = re.compile(r"\s*,\s*")
_REST = re.compile(r"[ \t]*[,;]?[ \t]*(?:\n|$)")
_OPENED = re.compile(r"[(\[{]\s*\Z")
_CLOSED = re.compile(r"\s*[)\]}]")
_BLANKS = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class Site:
    """text[start:end] becomes `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class EditPlan:
    """An edit of `text`; the sites are in an order in which a user may make them."""

    kind: str
    text: str
    sites: tuple[Site, ...]
    ordered: bool = False
    """Whether they are made in exactly this order, and only the last one can be predicted."""


def plan(kind: str, text: str, sites: Sequence[Site], *, ordered: bool = False) -> EditPlan | None:
    """A plan, or None if its sites overlap, change nothing or are too many.

    Two removals may not touch either: in the inverse plan the order of their texts would be unknown.
    """
    real = [site for site in dict.fromkeys(sites) if text[site.start : site.end] != site.text]
    inside = sorted(real, key=_place)
    if not real or len(real) > MAX_SITES or any(a.end > b.start for a, b in pairwise(inside)):
        return None
    if any(a.end == b.start and not a.text and not b.text for a, b in pairwise(inside)):
        return None
    return EditPlan(kind, text, tuple(real), ordered)


def applied(text: str, sites: Iterable[Site]) -> str:
    """The text after applying all sites, which must not overlap."""
    parts, at = [], 0
    for site in sorted(sites, key=_place):
        parts += [text[at : site.start], site.text]
        at = site.end
    return "".join([*parts, text[at:]])


def flipped(made: EditPlan) -> EditPlan:
    """The inverse edit; its text is the text after the plan."""
    shift = 0
    inverse = {}
    for site in sorted(made.sites, key=_place):
        start = site.start + shift
        inverse[site] = Site(start, start + len(site.text), made.text[site.start : site.end])
        shift += len(site.text) - (site.end - site.start)
    return EditPlan(
        made.kind, applied(made.text, made.sites), tuple(inverse[site] for site in made.sites), made.ordered
    )


def without_item(text: str, items: Sequence[TextSpan], index: int) -> Site | None:
    """The site that removes a list item and its comma; None if anything but a comma or a bracket is next to it."""
    start, end = items[index]
    if index + 1 < len(items):
        following = items[index + 1][0]
        return Site(start, following, "") if _BETWEEN.fullmatch(text, end, following) else None
    if index:
        before = items[index - 1][1]
        return Site(before, end, "") if _BETWEEN.fullmatch(text, before, start) else None
    return (
        Site(start, end, "") if _OPENED.search(text, max(0, start - 80), start) and _CLOSED.match(text, end) else None
    )


def without_lines(text: str, span: TextSpan) -> Site | None:
    """The site that removes a span's whole lines; None if they contain anything else."""
    start = text.rfind("\n", 0, span[0]) + 1
    rest = _REST.match(text, span[1])
    if rest is None or not _BLANKS.fullmatch(text, start, span[0]):
        return None
    return Site(start, rest.end(), "")


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """The offset after the line break of the line that contains `at`."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _place(site: Site) -> TextSpan:
    return site.start, site.end
