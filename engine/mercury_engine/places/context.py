"""Features of a situation as a whole, equal for all its candidates."""

from functools import reduce
from math import log1p
from operator import or_

from mercury_engine.places.candidates import Kind, Names
from mercury_engine.places.line_looks import with_text
from mercury_engine.places.situation import LineChange, Situation
from mercury_engine.places.whole_document import WholeDocument
from mercury_engine.text.paths_of_tests import is_test

Occurrences = dict[tuple[int, int], dict[str, int]]

CONTEXT_FEATURES = (
    "changes", "documents", "candidates", "inserts", "deletes", "removed_lines", "inserted_lines", "stale_names",
    "added_names", "stale_lines", "added_lines", "scope_lines", "repeated", "is_test", "cursor_is_at_change",
    "last_new_is_known", "stale_left_here", "last_is_import", "last_is_header", "last_is_comment", "added_unknown",
    "stale_gone", "move_is_here", "move_is_down", "move", "last_lines",
)  # fmt: skip

FAR = 8_102.0
"""Lines; the distance of a line in another document, and of one from no change."""


def context_features(situation: Situation, count: int, names: Names, found: Occurrences) -> list[float]:
    """The values of CONTEXT_FEATURES, for `count` candidates."""
    last, before = situation.changes[-1], situation.changes[:-1]
    pairs = [(change.old_words - change.new_words, change.new_words - change.old_words) for change in situation.changes]
    kinds = {place: reduce(or_, words.values()) for place, words in found.items()}
    lines = [sum([1 for each in kinds.values() if each & kind]) for kind in (Kind.STALE, Kind.ADDED, Kind.SCOPE)]
    new = last.new_words - last.old_words
    changed = {(change.document, line) for change in situation.changes for line in range(change.start, change.end)}
    known = {word for place, words in found.items() if place not in changed for word in words}
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
        float(situation.cursor == (last.document, last.last)),
        len(new & {word for change in before for word in change.new_words}) / max(1, len(new)),
        log1p(sum(1 for place, each in kinds.items() if each & Kind.STALE and place[0] == last.document)),
        *_look(situation.documents[last.document], last),
        log1p(len(names.added - known)),
        log1p(len(names.stale - known)),
        *_move(last, before[-1] if before else None),
        log1p(len(situation.documents[last.document].lines)),
    ]


def _look(document: WholeDocument, last: LineChange) -> list[float]:
    """Whether the last change is imports only, begins a definition, and is comments only."""
    lines = with_text(last.inserted) or with_text(last.removed)
    return [
        float(bool(lines) and all(line.is_import for line in lines)),
        float(last.start < len(document.lines) and document.is_header(last.start)),
        float(bool(lines) and all(line.is_comment for line in lines)),
    ]


def _move(last: LineChange, before: LineChange | None) -> list[float]:
    """Whether the last two changes are in one document, whether the last is further down, and how far."""
    if before is None or before.document != last.document:
        return [0.0, 0.0, log1p(FAR)]
    return [1.0, float(last.start > before.start), log1p(abs(last.start - before.start))]
