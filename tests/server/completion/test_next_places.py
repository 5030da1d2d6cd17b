"""Where the next edit may be: the learned head over the open documents."""

import pytest
from mercury_engine.places.head import PlaceHead
from mercury_engine.places.situation import LineChange, Situation
from mercury_engine.places.whole_document import WholeDocument

from mercury_lsp.completion.next_edits import places
from mercury_lsp.completion.next_edits.places import (
    HEAD_FILE,
    MAX_DOCUMENTS,
    Place,
    bundled_head,
    ranked_places,
)
from mercury_lsp.documents import document
from tests.server.completion.test_history import A, B, HistoryDesk

CODE = """\
import os


def load(path):
    with open(path) as file:
        return file.read()


class Store:
    size = 1

    def read(self, name):
        text = load(name)
        return text
"""


@pytest.fixture(autouse=True)
def all_places(monkeypatch):
    """Also the least likely ones: these texts are short."""
    monkeypatch.setattr(places, "MIN_PROBABILITY", 0.0)


def find(desk: HistoryDesk, *uris: str) -> list[Place]:
    documents = [(desk.documents.snapshot(uri), desk.documents.path(uri)) for uri in uris or (A,)]
    return ranked_places(documents, desk.history.hunks())


def test_the_head_comes_with_the_package():
    assert HEAD_FILE.is_file() and isinstance(bundled_head(), PlaceHead)


def test_the_call_of_a_function_that_got_an_argument_is_the_likeliest_place():
    desk = HistoryDesk(a=CODE).replace("def load(path)", "def load(path, encoding)")
    best = find(desk)[0]
    assert best.path == "a.py" and best.start_line <= 12 < best.end_line
    assert best.snapshot.source is desk.documents.snapshot(A).source


def test_places_are_found_in_other_documents():
    desk = HistoryDesk(a=CODE[:90], b="from a import load\n\n\ndef f(x):\n    return load(x)\n")
    desk.replace("def load(path)", "def load(path, encoding)")
    assert "b.py" in {place.path for place in find(desk, A, B)}
    assert {place.path for place in find(desk)} == {"a.py"}


def test_of_many_documents_those_changed_last_are_looked_through():
    calls = "def f(x):\n    return load(x)\n"
    desk = HistoryDesk(a=CODE[:90], **{f"c{n}": "" for n in range(MAX_DOCUMENTS)}, z=calls + calls)
    last = "file:///work/z.py"
    uris = [A, *(f"file:///work/c{n}.py" for n in range(MAX_DOCUMENTS)), last]
    desk.replace("def load(path)", "def load(path, encoding)")
    assert "z.py" not in {each.path for each in find(desk, *uris)}
    desk.replace("return load(x)", "return load(x, 1)", last)
    assert "z.py" in {each.path for each in find(desk, *uris)}


def test_without_a_history_there_is_no_place():
    assert find(HistoryDesk(a=CODE)) == []


def test_a_document_too_long_to_be_parsed_is_not_looked_through(monkeypatch):
    monkeypatch.setattr(document, "MAX_PARSED_BYTES", 20)
    assert find(HistoryDesk(a=CODE).replace("def load(path)", "def load(path, encoding)")) == []


def test_the_ranking_is_that_of_training():
    desk = HistoryDesk(a=CODE).replace("def load(path)", "def load(path, encoding)")
    [hunk] = desk.history.hunks()
    whole = WholeDocument("a.py", tuple(desk.text().splitlines(keepends=True)))
    change = LineChange(0, hunk.line, hunk.before_lines, hunk.after_lines)
    expected = bundled_head().places(Situation((whole,), (change,), (0, hunk.line)), 3)
    assert [(each.line, each.probability) for each in find(desk)] == [
        (p.candidate.line, p.probability) for p in expected
    ]
