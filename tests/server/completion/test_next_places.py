"""Where the next edit may be: the learned head over an index of the open documents, in versions that are current."""

from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st
from lsprotocol import types
from mercury_engine.places.head import PlaceHead
from mercury_engine.places.situation import LineChange, Situation
from mercury_lab.training.commits.whole_document import WholeDocument

from mercury_lsp.completion.next_edits import indexed_document
from mercury_lsp.completion.next_edits.indexed_document import IndexedDocument
from mercury_lsp.completion.next_edits.places import HEAD_FILE, Place, Places, bundled_head
from mercury_lsp.documents.document import Document, Snapshot
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


def find(desk: HistoryDesk, uri: str = A, line: int = 3, allowed: Sequence[str] = (A, B)) -> list[Place]:
    return best(Places(desk.documents), desk, uri, line, allowed)


def best(
    places: Places, desk: HistoryDesk, uri: str = A, line: int = 3, allowed: Sequence[str] = (A, B)
) -> list[Place]:
    return places.rank(uri, line, desk.history.hunks(), lambda other: other in allowed)


def finish(indexed: IndexedDocument, snapshot: Snapshot) -> None:
    while not indexed.update(snapshot):
        pass


def test_the_head_comes_with_the_package():
    assert HEAD_FILE.is_file() and isinstance(bundled_head(), PlaceHead)


def test_the_call_of_a_function_that_got_an_argument_is_the_likeliest_place():
    desk = HistoryDesk(a=CODE).replace("def load(path)", "def load(path, encoding)")
    best = find(desk)[0]
    assert best.path == "a.py" and best.start_line <= 12 < best.end_line
    assert best.snapshot.source is desk.documents.snapshot(A).source


def test_places_are_found_in_other_open_documents_but_not_in_ignored_ones():
    desk = HistoryDesk(a=CODE[:90], b="from a import load\n\n\ndef f(x):\n    return load(x)\n")
    desk.replace("def load(path)", "def load(path, encoding)")
    assert "b.py" in {place.path for place in find(desk)}
    assert {place.path for place in find(desk, allowed=(A,))} == {"a.py"}


def test_without_a_history_there_is_no_place():
    assert find(HistoryDesk(a=CODE)) == []


def test_a_document_that_is_not_indexed_yet_has_no_places(monkeypatch):
    monkeypatch.setattr(indexed_document, "WORK_SLICE_SECONDS", 0)
    desk = HistoryDesk(a=CODE * 40).replace("def load(path)", "def load(path, encoding)")
    places = Places(desk.documents)
    assert best(places, desk) == []
    while places.work():
        pass
    assert best(places, desk)


def test_the_places_of_a_version_are_gone_with_its_lines():
    desk = HistoryDesk(a=CODE).replace("def load(path)", "def load(path, encoding)")
    places = Places(desk.documents)
    assert best(places, desk)
    desk.put((40, desk.text()[40:], ""))
    for place in best(places, desk, line=0):
        assert place.end_line <= desk.text().count("\n") + 1


def test_an_edit_reads_only_the_chunks_that_it_touched(monkeypatch):
    read: list[str] = []
    original = indexed_document._Chunk
    monkeypatch.setattr(indexed_document, "_Chunk", lambda text: read.append(text) or original(text))
    document, indexed = Document(A, "python", 1, CODE * 200), IndexedDocument("a.py")
    finish(indexed, document.snapshot())
    read.clear()
    edit(document, 20_000, 3, "xyz")
    finish(indexed, document.snapshot())
    assert len(read) <= 2


def edit(document: Document, start: int, count: int, text: str) -> None:
    snapshot = document.snapshot()
    span = (types.Position(*snapshot.position_at(at)) for at in (start, start + count))
    document.apply([types.TextDocumentContentChangePartial(types.Range(*span), text)], 1)


PIECES = st.sampled_from(
    ["def f(x):\n", "    y = x\n", "\n", "class A:\n", "    def g(self):\n", "        f(x)", "x", "\n\n"]
)


SPLIT = ["\n\n", "    y = x\n", "class A:\n", "    y = x\n", "\n", "\n\n"]
"""After the edit of the example, chunks end inside lines."""


@settings(max_examples=60, deadline=None)
@example(SPLIT, [(122, 26, "x")])
@given(st.lists(PIECES, max_size=30), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 80), PIECES), max_size=5))
def test_the_index_says_the_same_as_the_whole_text_after_any_edits(pieces, edits):
    open_document, indexed = Document(A, "plaintext", 1, "".join(pieces) * 5), IndexedDocument("a.py")
    for start, count, text in [(0, 0, ""), *edits]:
        start = min(start, open_document.snapshot().length)
        edit(open_document, start, count, text)
        finish(indexed, open_document.snapshot())
        lines = open_document.snapshot().text.splitlines(keepends=True)
        whole = WholeDocument("a.py", "python", tuple(lines))
        assert [indexed.line(n) for n in range(indexed.line_count)] == lines
        assert indexed.head(80) == lines[:80]
        for n in range(len(lines) + 1):
            assert [*indexed.lines_in(n, min(n + 7, len(lines)))] == lines[n : n + 7]
        for word in ("self", "def", "f"):
            assert indexed.lines_with(word, 1000) == (whole.lines_with(word, 1000) if len(word) > 1 else [])
        for n in range(len(lines)):
            assert (indexed.indent(n), indexed.scope(n), indexed.is_header(n)) == (
                whole.indent(n), whole.scope(n), whole.is_header(n)
            )  # fmt: skip
            assert indexed.headers_around(n) == whole.headers_around(n)


def test_the_ranking_is_that_of_training():
    desk = HistoryDesk(a=CODE).replace("def load(path)", "def load(path, encoding)")
    [hunk] = desk.history.hunks()
    whole = WholeDocument("a.py", "python", tuple(desk.text().splitlines(keepends=True)))
    change = LineChange(0, hunk.line, hunk.before_lines, hunk.after_lines)
    expected = bundled_head().places(Situation((whole,), (change,), (0, 3)), 3)
    assert [(each.line, each.probability) for each in find(desk)] == [
        (p.candidate.line, p.probability) for p in expected
    ]
