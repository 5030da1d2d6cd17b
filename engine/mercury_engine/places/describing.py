"""Describes single candidates: what a glance at the line, at its place and at its names says."""

from collections import Counter
from collections.abc import Sequence
from functools import cache, reduce
from math import log1p
from operator import attrgetter, or_
from pathlib import PurePosixPath

from mercury_engine.places.candidates import Candidate, Kind, Names, bare_stem, lines_of_names
from mercury_engine.places.context import FAR, Occurrences
from mercury_engine.places.cores import core_of
from mercury_engine.places.likeness import LikeLines
from mercury_engine.places.line_looks import LOOK_FEATURES, Line, seen, with_text
from mercury_engine.places.situation import LineChange, Situation
from mercury_engine.places.whole_document import Header, WholeDocument
from mercury_engine.text.paths_of_tests import is_test

LINES_FEATURES = (
    "from_cursor", "from_last", "from_any", "from_scope", "changes_here", "changes_in_scope",
    "document_stale", "document_weight",
)  # fmt: skip
"""Distances in lines, and counts; the head sees their logarithms."""

NAME_WEIGHTS = ("stale_weight", "added_weight", "scope_weight", "kept_weight")
"""Sums over names of their share of all lines that have them."""

GLANCE_FEATURES = (
    *LINES_FEATURES,
    *NAME_WEIGHTS, *(f"{name}_around" for name in NAME_WEIGHTS),
    "like_removed", "like_inserted", "like_removed_any", "like_inserted_any",
    *(kind.name or "" for kind in Kind),
    "is_cursor_document", "is_last_document", "is_changed_document", "is_test", "is_same_folder", "is_same_stem",
    "is_below_cursor", "is_below_last", "goes_on", "unlike_move", "is_above_all", "is_below_all",
    "is_last_scope", "is_changed_scope", "is_scope_alike", "indent", "is_same_indent",
    *LOOK_FEATURES, "is_header", "position", "is_first_stale_below", "equals_removed",
    "has_old", "has_old_any", "has_left_any", "equals_above", "equals_below", "is_first_removed", "is_first_inserted",
    "is_shape_removed", "is_shape_inserted",
)  # fmt: skip
"""Features of one candidate."""

OUTSIDE_DEFINITIONS = 1_096.0
"""Lines from the head of its definition that a line outside all definitions counts as."""

UNLIKE_ANY_MOVE = 5.0
"""Logarithm of a factor; how much the distance differs from that of the last move, if there was none."""

LATEST_CHANGES = 4
"""Changes whose old text is looked for."""

LOOKED_LINES = 8
"""Lines of the last change whose shape is looked for."""

MIN_SIGNS = 3
"""Characters; shorter lines and words are too common to be looked for."""

_STALE, _ADDED, _SCOPE, _ALIKE = map(int, (Kind.STALE, Kind.ADDED, Kind.SCOPE, Kind.ALIKE))
_NO_WEIGHTS = (0.0, 0.0, 0.0, 0.0)
_AROUND = (-3, -2, -1, 1, 2, 3)


class Describer:
    """Computes the features of the candidates of one situation; `near` has their lines and those above, by document."""

    def __init__(self, situation: Situation, names: Names, found: Occurrences, near: Sequence[dict[int, str]]) -> None:
        self.situation, self.names, self.found, self.near = situation, names, found, near
        self.last = situation.changes[-1]
        self.counts = lines_of_names(found)
        self.scopes = [situation.documents[c.document].scope(c.start) for c in situation.changes]
        pairs = [(change.document, scope) for change, scope in zip(situation.changes, self.scopes, strict=True)]
        self.changes_in = Counter(pairs)
        self.last_name = self.scopes[-1].name.lower() if self.scopes[-1] else ""
        self.spans: list[list[tuple[int, int]]] = [[] for _ in situation.documents]
        for change in situation.changes:
            self.spans[change.document].append((change.start, change.last))
        here = self.spans[self.last.document]
        self.move = here[-1][0] - here[-2][0] if len(here) > 1 else 0
        self.indent = _indent_of(self.last)
        self.sums: dict[tuple[int, int], tuple[float, ...]] = {}
        self.documents = [self._document(number, document) for number, document in enumerate(situation.documents)]
        self.sizes = self._sizes()
        below = [place[1] for place, words in found.items() if place[0] == self.last.document
                 and place[1] >= self.last.end and reduce(or_, words.values()) & _STALE]  # fmt: skip
        self.first_below = min(below, default=-1)
        self._look_at_changes()

    def _look_at_changes(self) -> None:
        changes, last = self.situation.changes, self.last
        document = self.situation.documents[last.document]
        self.removed_lines = {line.strip() for change in changes for line in change.removed} - {""}
        self.likes = [
            LikeLines(side(last), [line for change in changes for line in side(change)])
            for side in (attrgetter("removed"), attrgetter("inserted"))
        ]
        cores = [core_of(change) for change in changes[-LATEST_CHANGES:]]
        self.old = cores[-1].old if len(cores[-1].old) > 1 else ""
        self.olds = [core.old for core in cores if len(core.old) > 1]
        self.lefts = [left for core in cores if (left := _worth_finding(core.left))]
        self.above = _worth_finding(document.lines[last.start - 1].strip()) if last.start else ""
        self.below = _worth_finding(document.lines[last.end].strip()) if last.end < len(document.lines) else ""
        self.looks_above = bool(self.above or self.below)
        sides = [with_text(side)[:LOOKED_LINES] for side in (last.removed, last.inserted)]
        self.firsts = [{line.first for line in side if line.first} for side in sides]
        self.shapes = [{line.shape for line in side if len(line.shape) >= MIN_SIGNS} for side in sides]

    def __call__(self, place: Candidate) -> list[float]:
        """The values of GLANCE_FEATURES."""
        document = self.situation.documents[place.document]
        line = seen(self.near[place.document][place.line])
        scope = document.scope(place.line)
        near, is_where = self._distance(place)
        return [
            *near,
            float(place.line - scope.line) if scope else OUTSIDE_DEFINITIONS,
            float(len(self.spans[place.document])),
            float(self.changes_in.get((place.document, scope), 0)),
            *self.sizes[place.document],
            *self._weights(place),
            *self._likeness(line),
            *_kind_bits(place.kinds),
            *self.documents[place.document],
            *is_where,
            *self._scope(place, document, scope),
            *line.look,
            float(bool(place.kinds & Kind.HEADER) and document.is_header(place.line)),
            place.line / max(1, len(document.lines)),
            float(place.document == self.last.document and place.line == self.first_below),
            float(line.text in self.removed_lines),
            *self._text(place, line),
        ]

    def _document(self, number: int, document: WholeDocument) -> list[float]:
        last = self.situation.documents[self.last.document]
        return [
            float(number == self.situation.cursor[0]),
            float(number == self.last.document),
            float(bool(self.spans[number])),
            float(is_test(document.path)),
            float(PurePosixPath(document.path).parent == PurePosixPath(last.path).parent),
            float(bare_stem(document.path) == bare_stem(last.path)),
        ]

    def _sizes(self) -> list[tuple[float, float]]:
        """How many names that were taken away each document still has, and the weight of all its names."""
        stale = [0] * len(self.situation.documents)
        weights = [0.0] * len(stale)
        for place, words in self.found.items():
            for word, kind in words.items():
                stale[place[0]] += kind & _STALE > 0
                weights[place[0]] += 1 / self.counts[word]
        return list(zip(map(float, stale), weights, strict=True))

    def _distance(self, place: Candidate) -> tuple[list[float], list[float]]:
        """Lines from the cursor, the last change and any change; and on which side of them the place is."""
        line, last, spans = place.line, self.last, self.spans[place.document]
        cursor = line - self.situation.cursor[1] if place.document == self.situation.cursor[0] else None
        gap = _gap(last, line) if place.document == last.document else None
        gaps = [start - line if line < start else max(0, line - end) for start, end in spans]
        is_moved = gap is not None and self.move != 0
        near = [
            FAR if cursor is None else float(abs(cursor)),
            FAR if gap is None else float(abs(gap)),
            float(min(gaps, default=FAR)),
        ]
        is_where = [
            float(cursor is not None and cursor > 0),
            float(gap is not None and gap > 0),
            float(is_moved and (line > last.start) == (self.move > 0)),
            abs(log1p(abs(line - last.start)) - log1p(abs(self.move))) if is_moved else UNLIKE_ANY_MOVE,
            float(bool(spans) and line < min(spans)[0]),
            float(bool(spans) and line > max([end for _, end in spans])),
        ]
        return near, is_where

    def _scope(self, place: Candidate, document: WholeDocument, scope: Header | None) -> list[float]:
        indent = document.indent(place.line)
        is_last = scope is not None and place.document == self.last.document and scope == self.scopes[-1]
        is_alike = (
            scope is not None and not is_last and len(self.last_name) > 3 and self.last_name in scope.name.lower()
        )
        return [
            float(is_last),
            float(scope is not None and (place.document, scope) in self.changes_in),
            float(is_alike),
            max(-4.0, min(4.0, (indent - self.indent) / 4)),
            float(indent == self.indent),
        ]

    def _weights(self, place: Candidate) -> tuple[float, ...]:
        number, line = place.document, place.line
        here = self._weights_at((number, line))
        near = [self._weights_at((number, line + n)) for n in _AROUND if (number, line + n) in self.found]
        return (*here, *map(sum, zip(*near, strict=True))) if near else here + _NO_WEIGHTS

    def _weights_at(self, at: tuple[int, int]) -> tuple[float, ...]:
        known = self.sums.get(at)
        if known is None:
            if at not in self.found:
                return _NO_WEIGHTS
            stale = added = scope = kept = 0.0
            for word, kind in self.found[at].items():
                weight = 1 / self.counts[word]
                stale += weight if kind & _STALE else 0
                added += weight if kind & _ADDED else 0
                scope += weight if kind & _SCOPE else 0
                kept += weight if kind & _ALIKE else 0
            known = self.sums[at] = (stale, added, scope, kept)
        return known

    def _likeness(self, line: Line) -> list[float]:
        (removed, any_removed), (inserted, any_inserted) = (like(line.words) for like in self.likes)
        return [removed, inserted, any_removed, any_inserted]

    def _text(self, place: Candidate, line: Line) -> list[float]:
        text = line.text
        prior = self.near[place.document][place.line - 1].strip() if self.looks_above and place.line else ""
        return [
            float(bool(self.old) and self.old in text),
            float(any(old in text for old in self.olds)),
            float(any(left in text for left in self.lefts)),
            float(bool(self.above) and self.above in (text, prior)),
            float(bool(self.below) and self.below in (text, prior)),
            float(line.first in self.firsts[0]),
            float(line.first in self.firsts[1]),
            float(line.shape in self.shapes[0]),
            float(line.shape in self.shapes[1]),
        ]


def _worth_finding(text: str) -> str:
    return text if len(text) >= MIN_SIGNS else ""


@cache
def _kind_bits(kinds: int) -> tuple[float, ...]:
    return tuple(float(bool(kinds & kind)) for kind in Kind)


def _gap(change: LineChange, line: int) -> int:
    """Lines from a change to a line; negative above it."""
    return line - change.start if line < change.start else max(0, line - change.last)


def _indent_of(change: LineChange) -> int:
    for line in (*change.inserted, *change.removed):
        if line.strip():
            return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
    return 0
