"""Features of candidate places: what a glance at the line, its surroundings and the changes says."""

from collections.abc import Sequence
from math import log1p
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

from mercury_engine.training.data.filters import is_test
from mercury_engine.training.places.candidates import Candidate, Kind, Names
from mercury_engine.training.places.situation import WORD, Change, Document, Situation

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

_COMMENT = ("#", "//", "/*", "*", "--", '"""')


def features(situation: Situation, places: Sequence[Candidate], names: Names, found: Occurrences) -> Array:
    """One row per candidate with the columns FEATURES; float32 [C, F]."""
    context = context_features(situation, len(places), names, found)
    describe = _Describer(situation, names, found)
    rows = [context + describe(place) for place in places]
    return np.array(rows, np.float32).reshape(len(places), len(FEATURES))


def context_features(situation: Situation, count: int, names: Names, found: Occurrences) -> list[float]:
    """The values of CONTEXT_FEATURES, for `count` candidates."""
    last = situation.changes[-1]
    pairs = [(change.old_words - change.new_words, change.new_words - change.old_words) for change in situation.changes]
    lines = [0, 0, 0]
    for words in found.values():
        for n, kind in enumerate((Kind.STALE, Kind.ADDED, Kind.SCOPE)):
            lines[n] += any(each & kind for each in words.values())
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
        log1p(sum(place[0] == last.document and any(k & Kind.STALE for k in w.values()) for place, w in found.items())),
    ]


class _Describer:
    """Computes the features of candidates of one situation."""

    def __init__(self, situation: Situation, names: Names, found: Occurrences) -> None:
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
        self.likes = [_line_words(self.last.removed), _line_words(self.last.inserted)]
        self.likes += [_line_words([line for c in situation.changes for line in c.removed])]
        self.likes += [_line_words([line for c in situation.changes for line in c.inserted])]
        below = [place[1] for place, words in found.items() if place[0] == self.last.document
                 and place[1] >= self.last.end and any(kind & Kind.STALE for kind in words.values())]  # fmt: skip
        self.first_below = min(below, default=-1)

    def __call__(self, place: Candidate) -> list[float]:
        document = self.situation.documents[place.document]
        line = document.lines[place.line]
        return [
            *(float(bool(place.kinds & kind)) for kind in Kind),
            *self.documents[place.document],
            *self._distance(place, document),
            *self._scope(place, document),
            *self._names(place),
            *self._likeness(line),
            *_look(line),
            float(any(header.line == place.line for header in document.headers) if place.kinds & Kind.HEADER else 0),
            float(line.strip() in ("}", ")", "];", "};", "});", "end", "]")),
            place.line / max(1, len(document.lines)),
        ]

    def _document(self, number: int, document: Document) -> list[float]:
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

    def _distance(self, place: Candidate, document: Document) -> list[float]:
        cursor = place.line - self.situation.cursor[1] if place.document == self.situation.cursor[0] else None
        last = _gap(self.last, place.line) if place.document == self.last.document else None
        gaps = [abs(_gap(c, place.line)) for c in self.situation.changes if c.document == place.document]
        return [
            log1p(abs(cursor)) if cursor is not None else 9.0,
            float(cursor is not None and cursor > 0),
            log1p(abs(last)) if last is not None else 9.0,
            float(last is not None and last > 0),
            log1p(min(gaps)) if gaps else 9.0,
        ]

    def _scope(self, place: Candidate, document: Document) -> list[float]:
        scope = document.scope(place.line)
        indent = document.indent(place.line)
        same = [scope is not None and c.document == place.document and scope == other
                for c, other in zip(self.situation.changes, self.scopes, strict=True)]  # fmt: skip
        last = self.scopes[-1]
        alike = (
            scope is not None and last is not None and len(last.name) > 3 and last.name.lower() in scope.name.lower()
        )
        return [
            float(same[-1]),
            float(any(same)),
            float(alike and not same[-1]),
            max(-4.0, min(4.0, (indent - self.indent) / 4)),
            float(indent == self.indent),
        ]

    def _names(self, place: Candidate) -> list[float]:
        here = self.found.get((place.document, place.line), {})
        around = [w for n in (-2, -1, 1, 2) for w in self.found.get((place.document, place.line + n), {}).items()]
        stale = [word for word, kind in here.items() if kind & Kind.STALE]
        added = [word for word, kind in here.items() if kind & Kind.ADDED]
        return [
            log1p(len(stale)),
            log1p(len(added)),
            log1p(sum(bool(kind & Kind.SCOPE) for kind in here.values())),
            log1p(sum(kind == Kind.ALIKE for kind in here.values())),
            max((1 / self.counts[word] for word in stale), default=0.0),
            max((1 / self.counts[word] for word in added), default=0.0),
            log1p(sum(bool(kind & Kind.STALE) for _, kind in around)),
            log1p(sum(bool(kind & Kind.ADDED) for _, kind in around)),
            float(place.document == self.last.document and place.line == self.first_below),
            float(any(word in self.of_last[0] for word in stale)),
            float(any(word in self.of_last[1] for word in here)),
        ]

    def _likeness(self, line: str) -> list[float]:
        words = frozenset(WORD.findall(line))
        likes = [max((_jaccard(words, other) for other in others), default=0.0) for others in self.likes]
        is_stale = bool(words & self.names.stale) and not words & self.names.added
        return [float(line.strip() in self.removed_lines), *likes, float(is_stale)]


def _gap(change: Change, line: int) -> int:
    """Lines from a change to a line; negative above it."""
    return line - change.start if line < change.start else max(0, line - max(change.start, change.end - 1))


def _indent_of(change: Change) -> int:
    for line in (*change.inserted, *change.removed):
        if line.strip():
            return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
    return 0


def _line_words(lines: Sequence[str]) -> set[frozenset[str]]:
    return {words for line in lines[:60] if len(words := frozenset(WORD.findall(line))) > 1}


def _jaccard(ours: frozenset[str], others: frozenset[str]) -> float:
    same = len(ours & others)
    return same / (len(ours) + len(others) - same) if same else 0.0


def _look(line: str) -> list[float]:
    text = line.strip()
    return [float(not text), float(text.startswith(_COMMENT))]
