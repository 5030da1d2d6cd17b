"""Features of candidate places: what a glance at the line, its surroundings and the changes says."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from math import log1p
from operator import attrgetter, or_
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

from mercury_engine.places.candidates import Candidate, Kind, Names
from mercury_engine.places.situation import WORD, Change, Readable, Situation
from mercury_engine.text.paths_of_tests import is_test

Occurrences = dict[tuple[int, int], dict[str, int]]
Array = npt.NDArray[np.float32]

CONTEXT_FEATURES = (
    "changes", "documents", "candidates", "inserts", "deletes", "removed_lines", "inserted_lines", "stale_names",
    "added_names", "stale_lines", "added_lines", "scope_lines", "repeated", "is_test", "cursor_is_at_change",
    "last_new_is_known", "stale_left_here",
)  # fmt: skip
"""Features of the situation, equal for all its candidates."""

PLACE_FEATURES = (
    *(kind.name or "" for kind in Kind),
    "is_cursor_document", "is_last_document", "is_changed_document", "is_test", "is_same_folder", "is_same_stem",
    "from_cursor", "is_below_cursor", "from_last", "is_below_last", "from_any", "is_last_scope", "is_changed_scope",
    "is_scope_alike", "indent", "is_same_indent", "stale", "added", "scope", "kept", "stale_rarity", "added_rarity",
    "stale_around", "added_around", "is_first_stale_below", "stale_of_last", "added_of_last", "equals_removed",
    "like_removed", "like_inserted", "like_removed_any", "like_inserted_any", "stale_without_added", "is_blank",
    "is_comment", "is_header", "is_closing", "position",
)  # fmt: skip
"""Features of one candidate."""

FEATURES = CONTEXT_FEATURES + PLACE_FEATURES

_STALE, _ADDED, _SCOPE, _ALIKE = map(int, (Kind.STALE, Kind.ADDED, Kind.SCOPE, Kind.ALIKE))
_NOTHING: dict[str, int] = {}

CACHED_LINES = 8_192
"""Lines whose words and look are kept."""

MAX_COMPARED_LINES = 60
"""Lines of the changes that candidates are compared with."""

_CLOSING = ("}", ")", "];", "};", "});", "end", "]")
_COMMENT = ("#", "//", "/*", "*", "--", '"""')


def features(situation: Situation[Readable], places: Sequence[Candidate], names: Names, found: Occurrences) -> Array:
    """One row per candidate with the columns FEATURES; float32 [C, F]."""
    context = context_features(situation, len(places), names, found)
    describe = _Describer(situation, names, found)
    rows = [context + describe(place) for place in places]
    return np.array(rows, np.float32).reshape(len(places), len(FEATURES))


def context_features(situation: Situation[Readable], count: int, names: Names, found: Occurrences) -> list[float]:
    """The values of CONTEXT_FEATURES, for `count` candidates."""
    last = situation.changes[-1]
    pairs = [(change.old_words - change.new_words, change.new_words - change.old_words) for change in situation.changes]
    kinds = {place: reduce(or_, words.values()) for place, words in found.items()}
    lines = [sum(1 for each in kinds.values() if each & kind) for kind in (_STALE, _ADDED, _SCOPE)]
    new = last.new_words - last.old_words
    return [
        log1p(len(situation.changes)),
        log1p(len(situation.documents)),
        log1p(count),
        float(not last.removed),
        float(not last.inserted),
        log1p(len(last.removed)),
        log1p(len(last.inserted)),
        log1p(len(names.stale)),
        log1p(len(names.added)),
        *(log1p(number) for number in lines),
        log1p(sum(any(pair) and pair == pairs[-1] for pair in pairs[:-1])),
        float(is_test(situation.documents[last.document].path)),
        float(situation.cursor == (last.document, max(last.start, last.end - 1))),
        len(new & {word for change in situation.changes[:-1] for word in change.new_words}) / max(1, len(new)),
        log1p(sum(1 for place, each in kinds.items() if each & _STALE and place[0] == last.document)),
    ]


class _Describer:
    """Computes the features of candidates of one situation."""

    def __init__(self, situation: Situation[Readable], names: Names, found: Occurrences) -> None:
        self.situation, self.names, self.found = situation, names, found
        self.last = situation.changes[-1]
        self.of_last = self.last.old_words - self.last.new_words, self.last.new_words - self.last.old_words
        self.scopes = [situation.documents[c.document].scope(c.start) for c in situation.changes]
        self.indent = _indent_of(self.last)
        self.documents = [self._document(number, document) for number, document in enumerate(situation.documents)]
        self.counts: dict[str, int] = {}
        for words in found.values():
            for word in words:
                self.counts[word] = self.counts.get(word, 0) + 1
        self.removed_lines = {line.strip() for change in situation.changes for line in change.removed} - {""}
        self.likes = [
            _LikeLines(side(self.last), [line for change in situation.changes for line in side(change)])
            for side in (attrgetter("removed"), attrgetter("inserted"))
        ]
        below = [place[1] for place, words in found.items() if place[0] == self.last.document
                 and place[1] >= self.last.end and reduce(or_, words.values()) & _STALE]  # fmt: skip
        self.spans: list[list[tuple[int, int]]] = [[] for _ in situation.documents]
        for change in situation.changes:
            self.spans[change.document].append((change.start, max(change.start, change.end - 1)))
        self.changed_scopes = {(c.document, scope) for c, scope in zip(situation.changes, self.scopes, strict=True)}
        self.first_below = min(below, default=-1)

    def __call__(self, place: Candidate) -> list[float]:
        document = self.situation.documents[place.document]
        line = _seen(document.line(place.line))
        return [
            *_kind_bits(place.kinds),
            *self.documents[place.document],
            *self._distance(place, document),
            *self._scope(place, document),
            *self._names(place),
            *self._likeness(line),
            *line.look,
            float(bool(place.kinds & Kind.HEADER) and document.is_header(place.line)),
            line.is_closing,
            place.line / max(1, document.line_count),
        ]

    def _document(self, number: int, document: Readable) -> list[float]:
        last = self.situation.documents[self.last.document]
        here, there = PurePosixPath(document.path), PurePosixPath(last.path)
        stems = [path.stem.removeprefix("test_").removesuffix("_test").split(".")[0] for path in (here, there)]
        return [
            float(number == self.situation.cursor[0]),
            float(number == self.last.document),
            float(any(change.document == number for change in self.situation.changes)),
            float(is_test(document.path)),
            float(here.parent == there.parent),
            float(stems[0] == stems[1]),
        ]

    def _distance(self, place: Candidate, document: Readable) -> list[float]:
        cursor = place.line - self.situation.cursor[1] if place.document == self.situation.cursor[0] else None
        gap = _gap(self.last, place.line) if place.document == self.last.document else None
        line = place.line
        gaps = [start - line if line < start else max(0, line - last) for start, last in self.spans[place.document]]
        return [
            log1p(abs(cursor)) if cursor is not None else 9.0,
            float(cursor is not None and cursor > 0),
            log1p(abs(gap)) if gap is not None else 9.0,
            float(gap is not None and gap > 0),
            log1p(min(gaps)) if gaps else 9.0,
        ]

    def _scope(self, place: Candidate, document: Readable) -> list[float]:
        scope = document.scope(place.line)
        indent = document.indent(place.line)
        is_changed = scope is not None and (place.document, scope) in self.changed_scopes
        is_last = is_changed and place.document == self.last.document and scope == self.scopes[-1]
        last = self.scopes[-1]
        alike = (
            scope is not None and last is not None and len(last.name) > 3 and last.name.lower() in scope.name.lower()
        )
        return [
            float(is_last),
            float(is_changed),
            float(alike and not is_last),
            max(-4.0, min(4.0, (indent - self.indent) / 4)),
            float(indent == self.indent),
        ]

    def _names(self, place: Candidate) -> list[float]:
        here = self.found.get((place.document, place.line), _NOTHING)
        around = [
            kind for n in (-2, -1, 1, 2) for kind in self.found.get((place.document, place.line + n), _NOTHING).values()
        ]
        stale = [word for word, kind in here.items() if kind & _STALE]
        added = [word for word, kind in here.items() if kind & _ADDED]
        return [
            log1p(len(stale)),
            log1p(len(added)),
            log1p(sum([1 for kind in here.values() if kind & _SCOPE])),
            log1p(sum([1 for kind in here.values() if kind == _ALIKE])),
            max((1 / self.counts[word] for word in stale), default=0.0),
            max((1 / self.counts[word] for word in added), default=0.0),
            log1p(sum([1 for kind in around if kind & _STALE])),
            log1p(sum([1 for kind in around if kind & _ADDED])),
            float(place.document == self.last.document and place.line == self.first_below),
            float(not self.of_last[0].isdisjoint(stale)),
            float(not self.of_last[1].isdisjoint(here)),
        ]

    def _likeness(self, line: "_Line") -> list[float]:
        is_stale = not line.words.isdisjoint(self.names.stale) and line.words.isdisjoint(self.names.added)
        (removed, any_removed), (inserted, any_inserted) = (like(line.words) for like in self.likes)
        is_removed = float(line.text in self.removed_lines)
        return [is_removed, removed, inserted, any_removed, any_inserted, float(is_stale)]


class _LikeLines:
    """The greatest likeness of a line to one of the last change's lines, and to one of all: words in common of both."""

    def __init__(self, last: Sequence[str], lines: Sequence[str]) -> None:
        of_last, of_any = (
            {words for line in each[:MAX_COMPARED_LINES] if len(words := _seen(line).words) > 1}
            for each in (last, lines)
        )
        self.sizes: list[int] = []
        self.in_last: list[bool] = []
        self.in_any: list[bool] = []
        self.with_word: dict[str, list[int]] = {}
        for words in of_last | of_any:
            for word in words:
                self.with_word.setdefault(word, []).append(len(self.sizes))
            self.sizes.append(len(words))
            self.in_last.append(words in of_last)
            self.in_any.append(words in of_any)

    def __call__(self, words: frozenset[str]) -> tuple[float, float]:
        common: dict[int, int] = {}
        for word in self.with_word.keys() & words:
            for number in self.with_word[word]:
                common[number] = common.get(number, 0) + 1
        best_of_last = best_of_any = 0.0
        for number, same in common.items():
            likeness = same / (len(words) + self.sizes[number] - same)
            if likeness > best_of_last and self.in_last[number]:
                best_of_last = likeness
            if likeness > best_of_any and self.in_any[number]:
                best_of_any = likeness
        return best_of_last, best_of_any


@dataclass(frozen=True, slots=True)
class _Line:
    """What one line's text alone says."""

    text: str
    words: frozenset[str]
    look: tuple[float, float]
    """Whether it is blank, and a comment."""
    is_closing: float


@lru_cache(CACHED_LINES)
def _seen(line: str) -> _Line:
    text = line.strip()
    look = float(not text), float(text.startswith(_COMMENT))
    return _Line(text, frozenset(WORD.findall(line)), look, float(text in _CLOSING))


@cache
def _kind_bits(kinds: int) -> tuple[float, ...]:
    return tuple(float(bool(kinds & kind)) for kind in Kind)


def _gap(change: Change, line: int) -> int:
    """Lines from a change to a line; negative above it."""
    return line - change.start if line < change.start else max(0, line - max(change.start, change.end - 1))


def _indent_of(change: Change) -> int:
    for line in (*change.inserted, *change.removed):
        if line.strip():
            return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
    return 0
