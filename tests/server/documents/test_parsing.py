"""What a parse reads is released afterwards."""

import gc
import tracemalloc

import pytest

from mercury_lsp.documents import parsing
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.languages import new_parser

TEXT = "".join(f"def f{n}(a):\n    return a[{n}]\n" for n in range(2_000)) + "x"


def never(_byte: int, _has_error: bool) -> bool:
    return False


def at_once(parser, source):
    return parsing.parse(parser, source, None, 60.0)


def sliced(parser, source):
    """A parse that stops after every step."""
    while (tree := parsing.begin_or_resume(parser, source, lambda *_: True)) is None:
        pass
    return tree


@pytest.mark.parametrize("parse", [at_once, sliced])
def test_a_parse_leaves_nothing_behind_of_what_it_read(parse):
    parser, source = new_parser("python"), ChunkedText.of(TEXT)
    parse(parser, source)
    tracemalloc.start()
    try:
        for _ in range(5):
            root = parse(parser, source).root_node
            assert root.end_byte == len(TEXT) and root.children[7].text == b"def f7(a):\n    return a[7]"
            del root  # tree-sitter's nodes are counted, too
        parser.reset()
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < len(TEXT)


def test_pieces_that_somebody_else_has_too_stay(monkeypatch):
    read, kept = ChunkedText.reader, {}

    def keeping(source, end=None):
        inner = read(source, end)
        return lambda byte, point: kept.setdefault(byte, inner(byte, point))

    monkeypatch.setattr(ChunkedText, "reader", keeping)
    assert parsing.begin_or_resume(new_parser("python"), ChunkedText.of(TEXT), never)
    gc.collect()
    others = [bytes([65 + n % 26]) * 300 for n in range(10_000)]
    assert len(kept) > 100 and all(TEXT.encode().startswith(piece, byte) for byte, piece in kept.items())
    assert len(others) == 10_000
