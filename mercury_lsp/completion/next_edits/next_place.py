"""Which place the user is taken to although nothing is offered there: a likely one out of the way, or any by key."""

from collections.abc import Callable, Iterator, Sequence

from mercury_lsp.completion.next_edits.checks import parses
from mercury_lsp.completion.next_edits.diagnostics import Evidence
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.completion.suggestions import Position
from mercury_lsp.documents.document import Snapshot

MIN_PROBABILITY = 0.5
"""Least probability of a place; 77 % of those far away are right in commits, and 98 % of quiet moments stay quiet."""

MIN_PROBABILITY_BY_KEY = 0.1
"""Least probability of a place if the user asks for one."""

MIN_DISTANCE_LINES = 8
"""A place must be more lines than this away from the cursor and from the last change: nearer ones are in sight."""

CERTAIN_CHANCE = 1.0
"""Chance of an error that appeared after the user's change: it must change, though it isn't known how."""


def broken_places(
    documents: Sequence[tuple[Snapshot, str]], hunks: Sequence[Hunk], evidence: Callable[[Snapshot], Evidence]
) -> Iterator[Place]:
    """The lines of documents, with their paths, in which an error appeared after the user's change.

    The latest hunk's document comes first, its lines below the hunk before those above. Lines that the user changed or
    that don't parse are left out: an error in them is that of an unfinished change.
    """
    if not hunks:
        return
    last = hunks[-1]
    for snapshot, path in sorted(documents, key=lambda each: each[0].uri != last.uri):
        own = [each for each in hunks if each.uri == snapshot.uri]
        at = last.line if snapshot.uri == last.uri else 0
        errors = sorted(evidence(snapshot).errors)
        for line in (*(each for each in errors if each >= at), *(each for each in reversed(errors) if each < at)):
            if not any(each.covers(line) for each in own) and parses(snapshot, line, line + 1):
                yield Place.around(snapshot, path, line, CERTAIN_CHANCE)


def next_place(places: Sequence[Place], last: Hunk, uri: str, line: int) -> Place | None:
    """The first of the ranked places, if it is worth a jump from a line of the document `uri` after the `last` change.

    A likelier place nearby means that the user is where the next edit is, so no other one is considered.
    """
    if not places or places[0].probability < MIN_PROBABILITY:
        return None
    best = places[0]
    is_near_cursor = best.snapshot.uri == uri and abs(best.line - line) <= MIN_DISTANCE_LINES
    return None if is_near_cursor or _is_near(best, last) else best


def place_by_key(places: Sequence[Place], last: Hunk) -> Place | None:
    """The likeliest of the ranked places, should the user ask, but not where they have just edited."""
    elsewhere = (each for each in places if each.snapshot.uri != last.uri or not last.line <= each.line < last.end_line)
    return next((each for each in elsewhere if each.probability >= MIN_PROBABILITY_BY_KEY), None)


def first_position(place: Place) -> Position:
    """Where the user is taken: the first character of the place's line that isn't blank."""
    snapshot = place.snapshot
    start = snapshot.offset_at(place.line, 0)
    text, _ = snapshot.line_at(start)
    return snapshot.position_at(start + len(text) - len(text.lstrip()))


def _is_near(place: Place, hunk: Hunk) -> bool:
    first, after = hunk.line - MIN_DISTANCE_LINES, hunk.end_line + MIN_DISTANCE_LINES
    return place.snapshot.uri == hunk.uri and first <= place.line <= after
