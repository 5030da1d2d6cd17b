"""Finds candidate places for the next edit: lines that the changes so far point to."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import chain
from pathlib import PurePosixPath

from mercury_engine.places.situation import Situation

MAX_CANDIDATES = 64
MAX_CHANGES = 4
"""Latest changes whose names are looked up."""

MAX_NAMES = 16
"""Names of each kind that are looked up, longest first."""

MAX_LINES_PER_NAME = 40
"""Lines; a name on more lines of a document says nothing there."""

NEAR_LINES = (-1, 2, -4, 5, -7, 8, -11, 12, -16, 17, -22, 23, 29, 35)
"""Distances from the last change, in lines, at which candidates stand; an edit is a few lines around a candidate."""

HEAD_LINES = 80
"""Lines in which imports are looked for."""

CACHED_PATHS = 256

_IMPORTS = ("import ", "from ", "use ", "#include", "const {")

TOLERANCE_LINES = 3
"""A candidate covers an edit at most so many lines away."""

KEYWORDS = frozenset(
    """and as assert async await bool boolean break case catch char class const continue def default del delete do
    double elif else enum except export extends false final finally float fn for from func function if impl import in
    instanceof int interface is lambda let long loop match mod mut new nil none None not null nullptr or package pass
    private protected pub public raise return self static str string struct super switch then this throw throws true
    True False try type typeof undefined unsigned use var void where while with yield err""".split()  # noqa: SIM905
)


class Kind(IntEnum):
    """Why a line is a candidate; kinds are combined as bits of an integer."""

    NEAR = 1
    STALE = 2
    """It has a name that a change took away."""
    ADDED = 4
    """It has a name that a change brought."""
    SCOPE = 8
    """It has the name of a definition that was changed."""
    ALIKE = 16
    """It shares two names or more with a changed line."""
    HEADER = 32
    IMPORT = 64
    END = 128


_WEIGHTS = [2 if kinds & (Kind.STALE | Kind.ADDED | Kind.SCOPE) else 1 for kinds in range(2 * max(Kind))]
"""Two for a name that a change took away, brought or defines, one for others; shared by the lines that have it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line of a document."""

    document: int
    line: int
    kinds: int


@dataclass(frozen=True, slots=True)
class Names:
    """The names that the latest changes took away, brought, kept on their lines, and the definitions they are in."""

    stale: frozenset[str]
    added: frozenset[str]
    kept: frozenset[str]
    scopes: frozenset[str]


def names_of(situation: Situation) -> Names:
    """The names that the latest changes touch; a name that was taken away once and brought once is stale."""
    latest = situation.changes[-MAX_CHANGES:]
    stale = {word for change in latest for word in change.old_words - change.new_words}
    added = {word for change in latest for word in change.new_words - change.old_words}
    kept = {word for change in latest for word in change.old_words & change.new_words}
    found = (situation.documents[change.document].scope(change.last) for change in latest)
    scopes = {header.name for header in found if header is not None}
    chosen = (_chosen(words) for words in (stale, added - stale, kept - stale - added, scopes))
    return Names(*chosen)


def _chosen(words: set[str]) -> frozenset[str]:
    return frozenset(sorted(words - KEYWORDS, key=lambda word: (-len(word), word))[:MAX_NAMES])


def occurrences(situation: Situation, names: Names) -> dict[tuple[int, int], dict[str, int]]:
    """The names on each line, by document and line; names that are everywhere are left out."""
    found: defaultdict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    kinds: defaultdict[str, int] = defaultdict(int)
    kinds_of = (
        (names.stale, Kind.STALE),
        (names.added, Kind.ADDED),
        (names.scopes, Kind.SCOPE),
        (names.kept, Kind.ALIKE),
    )
    for words, of_words in kinds_of:
        for word in words:
            kinds[word] |= int(of_words)
    for number, document in enumerate(situation.documents):
        for word, kind in kinds.items():
            for line in document.lines_with(word, MAX_LINES_PER_NAME):
                found[number, line][word] = kind
    return found


def lines_of_names(found: dict[tuple[int, int], dict[str, int]]) -> dict[str, int]:
    return Counter(chain.from_iterable(found.values()))


def candidates(situation: Situation, names: Names, found: dict[tuple[int, int], dict[str, int]]) -> list[Candidate]:
    """At most MAX_CANDIDATES lines outside the changes: those with the most telling names, and fixed ones."""
    kinds: defaultdict[tuple[int, int], int] = defaultdict(int)
    for place, kind in _fixed(situation):
        kinds[place] |= kind
    assert len(kinds) <= MAX_CANDIDATES
    changed = {(change.document, line) for change in situation.changes for line in range(change.start, change.end)}
    counts = lines_of_names(found)
    weights = {word: _WEIGHTS[kind] / counts[word] for words in found.values() for word, kind in words.items()}
    weighted = ((sum([weights[word] for word in words]), place) for place, words in found.items())
    ranked = sorted(
        ((weight, -_distance(situation, place), place) for weight, place in weighted if place not in changed),
        reverse=True,
    )
    for _, _, place in ranked:
        if len(kinds) >= MAX_CANDIDATES and place not in kinds:
            continue
        for kind in found[place].values():
            kinds[place] |= kind
    return [Candidate(*place, kind) for place, kind in sorted(kinds.items()) if place not in changed]


def _distance(situation: Situation, place: tuple[int, int]) -> int:
    return abs(place[1] - situation.cursor[1]) if place[0] == situation.cursor[0] else 10_000


def _fixed(situation: Situation) -> Iterator[tuple[tuple[int, int], int]]:
    """Lines near the cursor, headers of definitions around it, and the imports and the end of changed documents."""
    number, cursor = situation.cursor
    document = situation.documents[number]
    last = situation.changes[-1] if situation.changes else None
    top, bottom = (last.start, last.end - 1) if last and last.document == number else (cursor, cursor)
    for step in NEAR_LINES:
        line = top + step if step < 0 else max(top, bottom) + step
        if 0 <= line < len(document.lines):
            yield (number, line), Kind.NEAR
    scope = document.scope(cursor) if document.lines else None
    for line in {*document.headers_around(cursor), *((scope.line,) if scope else ())}:
        yield (number, line), Kind.HEADER
    for changed in {number, *(change.document for change in situation.changes)}:
        if (last_import := _last_import(situation, changed)) is not None:
            yield (changed, last_import), Kind.IMPORT
    for ended in _ended(situation):
        yield (ended, len(situation.documents[ended].lines) - 1), Kind.END


def _ended(situation: Situation) -> set[int]:
    """The documents at whose end something may come: the cursor's, changed ones, and the last one's test or code."""
    found = {situation.cursor[0], *(change.document for change in situation.changes)}
    if situation.changes:
        stem = bare_stem(situation.documents[situation.changes[-1].document].path)
        found |= {n for n, each in enumerate(situation.documents) if bare_stem(each.path) == stem}
    return {number for number in found if situation.documents[number].lines}


@lru_cache(CACHED_PATHS)
def bare_stem(path: str) -> str:
    """The name of a file without its suffixes and without what makes it a test's."""
    return PurePosixPath(path).stem.removeprefix("test_").removesuffix("_test").split(".")[0]


def _last_import(situation: Situation, number: int) -> int | None:
    """The last line of a document's head that imports something."""
    head = situation.documents[number].lines[:HEAD_LINES]
    return max((n for n, line in enumerate(head) if line.startswith(_IMPORTS)), default=None)
