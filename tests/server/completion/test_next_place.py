"""The place that the user is taken to: likely, and out of the way of the cursor and the last change."""

import pytest

from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.next_place import MIN_DISTANCE_LINES, MIN_PROBABILITY, next_place
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Snapshot

A, B = "file:///a.py", "file:///b.py"

TEXT = ChunkedText.of("")

CHANGED = Hunk(A, "a.py", "python", 20, "x = 1\n", "x = 2\ny = 3\n")
"""Lines 20 and 21."""


def at(line: int, probability: float = 0.9, uri: str = A) -> Place:
    return Place(Snapshot(uri, "python", 1, TEXT, None, False), "a.py", line, line - 3, line + 4, probability)


def test_a_likely_place_far_away_is_taken():
    assert next_place([at(80), at(20)], CHANGED, A, 21) == at(80)


def test_an_unlikely_place_is_not_taken():
    assert next_place([at(80, MIN_PROBABILITY - 0.01)], CHANGED, A, 21) is None
    assert next_place([at(80, MIN_PROBABILITY)], CHANGED, A, 21) is not None


@pytest.mark.parametrize(("line", "is_taken"), [(11, True), (12, False), (21, False), (30, False), (31, True)])
def test_a_place_near_the_last_change_is_not_taken(line: int, is_taken: bool):
    assert (next_place([at(line)], CHANGED, A, 100) is not None) is is_taken


def test_a_place_near_the_cursor_is_not_taken():
    assert next_place([at(80)], CHANGED, A, 80 + MIN_DISTANCE_LINES) is None
    assert next_place([at(80)], CHANGED, A, 80 - MIN_DISTANCE_LINES) is None
    assert next_place([at(80)], CHANGED, A, 81 + MIN_DISTANCE_LINES) is not None


def test_a_place_nearby_that_is_likelier_keeps_the_user_where_they_are():
    assert next_place([at(23, 0.5), at(80, 0.45)], CHANGED, A, 21) is None


def test_lines_of_another_document_are_never_near():
    assert next_place([at(20, uri=B)], CHANGED, A, 20) == at(20, uri=B)


def test_without_places_there_is_none():
    assert next_place([], CHANGED, A, 20) is None
