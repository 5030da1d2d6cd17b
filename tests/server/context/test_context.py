import string

from hypothesis import given, settings
from hypothesis import strategies as st
from mercury_engine.prompt.chunking import MAX_CHUNK_CHARS

from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document
from tests.support.document_edits import type_at

CODE = "import os\n\n\nclass A:\n" + "".join(
    f"    def f{n}(self, a, b):\n        x = a + {n}\n        return x * b\n\n" for n in range(400)
)


def document(text: str = CODE, language_id: str = "python") -> Document:
    return Document("file:///src/a.py", language_id, 1, text)


@given(st.integers(0, len(CODE)))
@settings(max_examples=50)
def test_the_blocks_join_to_the_text_around_the_cursor(offset):
    context = ContextBuilder().build(document().snapshot(), offset, None)
    chunks = set(document().snapshot().chunks)
    before = "".join(block for block in context.far if block in chunks) + context.near
    assert CODE[:offset].endswith(before) and len(before) <= 2400 + 800
    assert CODE[offset:].startswith("".join(context.suffix))
    assert bool(context.near) == bool(offset)
    assert context.line_prefix + context.line_suffix == document().snapshot().line_at(offset)[0]


def test_the_model_reads_line_feeds_whatever_breaks_the_document_has():
    own, other = document(CODE).snapshot(), document(CODE.replace("\n", "\r\n")).snapshot()
    ours, theirs = (ContextBuilder().build(each, each.offset_at(700, 8), "a.py") for each in (own, other))
    assert theirs.far[:2] == ours.far[:2] and "".join((*theirs.far[2:], theirs.near, *theirs.suffix)) in CODE


@settings(max_examples=30)
@given(st.integers(1, len(CODE)), st.text(string.ascii_letters + " =+.\n()[]'\"#", min_size=1, max_size=40))
def test_typing_changes_neither_far_blocks_nor_suffix_blocks_after_the_first(offset, typed):
    doc, builder = document(), ContextBuilder()
    first = builder.build(doc.snapshot(), offset, "a.py")
    chunks = {id(chunk) for chunk in doc.snapshot().chunks}
    window = [block for block in first.far if id(block) in chunks]
    following = first.suffix if offset in doc.snapshot().source.starts else first.suffix[1:]
    for character in typed:
        type_at(doc, offset, character)
        offset += 1
        context = builder.build(doc.snapshot(), offset, "a.py")
        assert [block for block in context.far if id(block) in chunks] == window
        rest = context.suffix if offset in doc.snapshot().source.starts else context.suffix[1:]
        assert rest == following


def test_the_path_comes_first_in_a_comment_of_the_language():
    builder = ContextBuilder()
    assert builder.build(document().snapshot(), 9, "src/a.py").far[0] == "# path: src/a.py\n"
    assert builder.build(document("a", "css").snapshot(), 1, "a.css").far == ("/* path: a.css */\n",)
    assert builder.build(document("a", "plaintext").snapshot(), 1, "a").far == ("# path: a\n",)


def test_a_very_long_line_stays_bounded():
    context = ContextBuilder().build(document("x" * 1_900_000).snapshot(), 1_000_000, None)
    assert len(context.near) <= 2 * MAX_CHUNK_CHARS and len(context.suffix[0]) <= 2 * MAX_CHUNK_CHARS
    assert len(context.line_prefix) <= 1600 and len(context.line_suffix) <= 800


def test_the_empty_document_has_an_empty_context():
    context = ContextBuilder().build(document("").snapshot(), 0, None)
    assert (context.near, context.far, context.suffix, context.multiline) == ("", (), (), True)
