from itertools import pairwise

import pytest
import tree_sitter_python
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types
from mercury_engine.prompt.chunking import MAX_CHUNK_CHARS
from tree_sitter import Language, Parser

from mercury_lsp.documents import parsing
from mercury_lsp.documents.chunked_text import ChunkedText, encode
from mercury_lsp.documents.document import Document

CODE = "".join(f"def f{n}(a, b):\n    x = a + {n}\n    return x * b\n\n" for n in range(200))
PIECES = st.lists(
    st.sampled_from(["a", "é", "😀", "\n", "\r", "\r\n", "\0", "\ud800", "\udc00", "    ", "def f():\n", "x" * 500]),
    max_size=30,
).map("".join)


def open_document(text: str, language_id: str = "python") -> Document:
    return Document("file:///a.py", language_id, 1, text)


def whole(text: str) -> types.TextDocumentContentChangeWholeDocument:
    return types.TextDocumentContentChangeWholeDocument(text=text)


def partial(start: tuple[int, int], end: tuple[int, int], text: str) -> types.TextDocumentContentChangePartial:
    span = types.Range(start=types.Position(*start), end=types.Position(*end))
    return types.TextDocumentContentChangePartial(range=span, text=text)


def reference_offset(text: str, line: int, column: int) -> int:
    """The protocol's rule, applied character by character."""
    offset, at = 0, 0
    while at < line:
        if offset == len(text):
            return offset
        offset += 2 if text.startswith("\r\n", offset) else 1
        at += text[offset - 1] in "\r\n"
    while column > 0 and offset < len(text) and text[offset] not in "\r\n":
        column -= 2 if text[offset] > "\uffff" else 1
        if column < 0:
            break
        offset += 1
    return offset


@given(PIECES, st.integers(0, 12), st.integers(0, 600))
def test_offset_at_agrees_with_the_protocols_rule(text, line, column):
    assert open_document(text, "plaintext").snapshot().offset_at(line, column) == reference_offset(text, line, column)


@given(PIECES, st.data())
def test_a_position_leads_back_to_its_offset_except_inside_crlf(text, data):
    snapshot = open_document(text, "plaintext").snapshot()
    offset = data.draw(st.integers(0, len(text)))
    back = snapshot.offset_at(*snapshot.position_at(offset))
    inside_crlf = text[offset - 1 : offset + 1] == "\r\n" if offset else False
    assert back == offset - inside_crlf


@given(PIECES, st.data())
def test_slices_and_lines_equal_those_of_the_text(text, data):
    snapshot = open_document(text, "plaintext").snapshot()
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    line, at = snapshot.line_at(start)
    assert snapshot.slice(start, end) == text[start:end]
    assert text[at : at + len(line)] == line and "\n" not in line and "\r" not in line


@settings(max_examples=60)
@given(PIECES, st.lists(st.tuples(*[st.integers(0, 9)] * 4, PIECES, st.booleans()), max_size=6))
def test_edits_lead_to_the_text_and_tree_of_a_fresh_parse(text, edits):
    document = open_document(text)
    document.snapshot()
    for line, column, end_line, end_column, new, is_whole in edits:
        start, end = sorted([(line, column), (end_line, end_column)])
        at, to = reference_offset(text, *start), reference_offset(text, *end)
        text = new if is_whole else text[:at] + new + text[to:]
        document.apply([whole(new) if is_whole else partial(start, end, new)], 2)
        assert document.snapshot().tree.root_node.end_byte <= len(encode(text))
        snapshot = document.parsed()
        assert snapshot.text == text and snapshot.length == len(text)
        assert all(snapshot.chunks) and all(len(chunk) <= 2 * MAX_CHUNK_CHARS for chunk in snapshot.chunks)
        assert not any(a.endswith("\r") and b.startswith("\n") for a, b in pairwise(snapshot.chunks))
        assert snapshot.tree is not None
        assert snapshot.tree.root_node.end_byte <= len(encode(text))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["x", " + é1", "(", ")", "# 😀", '"'])), max_size=8))
def test_the_incremental_tree_equals_a_fresh_one(edits):
    document = open_document(CODE)
    document.snapshot()
    for line, new in edits:
        document.apply([partial((line, 5), (line, 6), new)], 2)
        document.apply([partial((line, 5), (line, 5 + len(new.encode("utf-16-le")) // 2), "a")], 3)
        document.parsed()
        document.finish_parsing()
    snapshot = document.snapshot()
    fresh = Parser(Language(tree_sitter_python.language())).parse(encode(snapshot.text))
    assert str(snapshot.tree.root_node) == str(fresh.root_node)


def test_a_return_alone_ends_a_line_of_the_tree_too():
    document = open_document("a = 1\rb = 2\r")
    document.apply([partial((1, 4), (1, 5), "3\rc = 4")], 2)
    assert [node.start_point for node in document.parsed().tree.root_node.children] == [(0, 0), (1, 0), (2, 0)]


def test_typing_keeps_every_other_chunk_the_same_object():
    document = open_document(CODE)
    before = document.snapshot().chunks
    for column, character in enumerate("value = compute(1)"):
        document.apply([partial((401, 4 + column), (401, 4 + column), character)], column + 2)
    after = document.snapshot().chunks
    changed = [n for n, (a, b) in enumerate(zip(before, after, strict=True)) if a is not b]
    assert len(changed) == 1


def test_an_older_snapshot_keeps_its_text_and_tree():
    document = open_document("def f():\n    pass\n")
    old = document.snapshot()
    shape = str(old.tree.root_node), old.tree.root_node.end_byte
    document.apply([partial((0, 0), (1, 8), "x = 1")], 2)
    assert document.snapshot().text == "x = 1\n" and old.text == "def f():\n    pass\n"
    assert (str(old.tree.root_node), old.tree.root_node.end_byte) == shape


def test_positions_beyond_the_text_are_clamped():
    snapshot = open_document("ab\r\n😀c\n").snapshot()
    assert [snapshot.offset_at(*p) for p in [(0, 9), (1, 1), (1, 2), (1, 9), (2, 5), (9, 0)]] == [
        2,
        4,
        5,
        6,
        7,
        7,
    ]
    assert ChunkedText.of("ab\n").line_of(-1) == 0


@pytest.mark.parametrize("text", ["x" * 1_900_000, "[" + "1, " * 600_000 + "]\n"])
def test_a_line_of_two_megabytes_is_plain_text_and_an_edit_replaces_only_chunks_around_it(text, monkeypatch):
    monkeypatch.setattr("mercury_lsp.documents.document.parse", lambda *_: pytest.fail("it was parsed"))
    document = open_document(text, "json")
    before = set(map(id, document.snapshot().chunks))
    document.apply([partial((0, 500_000), (0, 500_000), "y")], 2)
    snapshot = document.parsed()
    assert snapshot.tree is None
    assert snapshot.offset_at(0, 900_000) == 900_000 and snapshot.position_at(700_000) == (0, 700_000)
    assert sum(len(chunk) for chunk in snapshot.chunks if id(chunk) not in before) <= 2 * MAX_CHUNK_CHARS


def test_a_parse_out_of_time_leaves_an_edited_tree_until_parsing_is_finished(monkeypatch):
    document = open_document(CODE)
    document.snapshot()
    monkeypatch.setattr("mercury_lsp.documents.document.KEYSTROKE_PARSE_SECONDS", 0.0)
    document.apply([partial((0, 0), (0, 0), "g(1)\n")], 2)
    late = document.parsed().tree.root_node
    assert late.has_changes and late.end_byte == len(CODE) + 5
    document.finish_parsing()
    settled = document.snapshot().tree.root_node
    assert not settled.has_changes and settled.children[0].type == "expression_statement"


def test_code_that_takes_too_long_to_parse_is_plain_text(monkeypatch):
    monkeypatch.setattr("mercury_lsp.documents.document.FIRST_PARSE_SECONDS", 0.0)
    assert open_document(CODE).snapshot().tree is None


# Long documents


def long_code(lines: int = 8_000) -> str:
    return "".join(f"def f{n}(a, b):\n    return a[{n}] + b\n" for n in range(lines // 2))


def fresh_tree(document: Document) -> str:
    return str(Parser(Language(tree_sitter_python.language())).parse(encode(document.snapshot().text)).root_node)


def test_a_long_document_is_parsed_in_slices_and_has_no_tree_until_the_last(monkeypatch):
    monkeypatch.setattr(parsing, "PARSE_SLICE_SECONDS", 0.0)
    document = open_document(long_code())
    assert document.begin_parsing()
    slices = 0
    while document.parse_a_little():
        snapshot = document.parsed()
        assert snapshot.tree is None and not snapshot.is_parsed
        slices += 1
    assert slices > 20 and document.snapshot().is_parsed
    assert str(document.snapshot().tree.root_node) == fresh_tree(document)
    assert not document.begin_parsing() and not document.parse_a_little()
