"""Finds the misspelt name in what the user typed last: it occurs once, and nearly is a name of the document."""

import re
from collections import Counter
from collections.abc import Container, Iterator

from mercury_lsp.completion.next_edits.edit_sites import SEARCH_REACH_CHARS, EditSite
from mercury_lsp.completion.next_edits.syntax_kind import kind_at
from mercury_lsp.documents.document import Snapshot

MIN_NAME_CHARS = 5
"""Shortest name whose spelling is judged: shorter ones are too often alike by chance."""

MAX_NAMES = 8
"""Names of one change that are looked at."""

MAX_OCCURRENCES = 20
"""Occurrences of a right name whose syntactic kind is compared, at some 20 microseconds each."""

_NAME = re.compile(r"[^\W\d]\w*")


def are_alike(one: str, other: str) -> bool:
    """Whether a slip of the finger turns one name into the other: two letters exchanged, one too many or one missing.

    The first letter is the same, and the last one of names of different lengths: names that differ there are more often
    two names (`row` and `rows`).
    """
    if one == other or min(len(one), len(other)) < MIN_NAME_CHARS or one[0] != other[0]:
        return False
    if not (one + other).replace("_", "").isalpha():
        return False
    if len(one) == len(other):
        differing = [at for at in range(len(one)) if one[at] != other[at]]
        return len(differing) == 2 and differing[1] == differing[0] + 1 and _exchanged(one, differing[0]) == other
    longer, shorter = sorted((one, other), key=len, reverse=True)
    if len(longer) != len(shorter) + 1 or longer[-1] != shorter[-1]:
        return False
    return any(longer[:at] + longer[at + 1 :] == shorter for at in range(1, len(shorter)))


def correction(start: int, end: int, snapshot: Snapshot, kept: Container[str] = ()) -> EditSite | None:
    """The first misspelt name within the text that was typed at [start, end), with its right spelling; None if none is.

    It is used there, not introduced, occurs nowhere else, and resembles exactly one name of the same syntactic kind.
    `kept`: names that the user wants as they are.
    """
    names = [(at, name) for at, name in _names(start, end, snapshot) if name not in kept]
    if not names or snapshot.tree is None or not snapshot.is_parsed:
        return None
    first = max(0, start - SEARCH_REACH_CHARS)
    text = snapshot.slice(first, end + SEARCH_REACH_CHARS)
    rare = [(at, name) for at, name in names if text.count(name) == 1 and _is_used(at, snapshot)]
    if not rare:
        return None
    known = Counter(_NAME.findall(text))
    for at, name in rare:
        right = [each for each in known if are_alike(name, each)]
        if len(right) == 1 and _is_same_kind(at, right[0], text, first, snapshot):
            return EditSite(at, name, right[0])
    return None


def _names(start: int, end: int, snapshot: Snapshot) -> Iterator[tuple[int, str]]:
    """The names that are long enough in the lines of a change, as far as it touches them."""
    line_start = snapshot.source.line_bounds(start)[0]
    text = snapshot.slice(line_start, snapshot.source.line_bounds(end)[1])
    touched = (
        (line_start + found.start(), found[0])
        for found in _NAME.finditer(text)
        if line_start + found.start() <= end and line_start + found.end() >= start
    )
    long_enough = [each for each in touched if len(each[1]) >= MIN_NAME_CHARS - 1]
    yield from long_enough[:MAX_NAMES]


def _is_used(at: int, snapshot: Snapshot) -> bool:
    kind = kind_at(snapshot, at)
    if kind is None or kind.role == "key":
        return False
    return not (kind.is_bound or kind.is_defined or kind.is_field or kind.is_declared or kind.is_shorthand)


def _is_same_kind(at: int, right: str, text: str, first: int, snapshot: Snapshot) -> bool:
    """Whether the right name occurs as what the misspelt one is, a name or a member."""
    role = getattr(kind_at(snapshot, at), "role", None)
    found = re.finditer(rf"(?<!\w){re.escape(right)}(?!\w)", text)
    for _, occurrence in zip(range(MAX_OCCURRENCES), found, strict=False):
        kind = kind_at(snapshot, first + occurrence.start())
        if kind is not None and kind.role == role:
            return True
    return False


def _exchanged(name: str, at: int) -> str:
    """The name with two neighbouring letters exchanged."""
    return name[:at] + name[at + 1] + name[at] + name[at + 2 :]
