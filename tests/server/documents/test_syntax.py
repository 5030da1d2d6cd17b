"""A fill is checked in its place, on any thread, and only for errors that it causes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from mercury_lsp.documents.document import Document, Snapshot
from mercury_lsp.documents.syntax import breaks, first_error

BEFORE, AFTER = "def area(w, h):\n    size = ", "\n    return size\n"


def document(before: str = BEFORE, after: str = AFTER, language: str = "python") -> tuple[Snapshot, int]:
    return Document("file:///a", language, 1, before + after).snapshot(), len(before)


@pytest.mark.parametrize("text", ["w * h", "[w, h]", "max(w,\n        h)", '"größe 😀"', "w if w else h"])
def test_code_that_parses_has_no_error(text):
    assert first_error(*document(), text) is None


def test_an_error_inside_the_fill_is_found_where_it_begins():
    text = "max(w, ))) + h * 2"
    found = first_error(*document(), text)
    assert found is not None
    assert text[:found].startswith("max(w")
    assert found < len(text) - 4


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("def f(a):\n    pass\n", "f(a)", "f(a, True)", True),
        ("f(a)\nx = 1\n", "f(a)", "f(a, True)", False),
        ("f(lambda n: 1)\n", "n", "self.n", True),
        ("f('ö', n)\n", "n", "self.n", False),
        ("def f(a, True):\n    pass\n", "f(a, True)", "f(a, False)", False),
        ("x = = 2\n\n\ny = n\n", "n", "m", False),
    ],
)
def test_a_replacement_breaks_only_syntax_that_was_right_before(text, old, new, expected):
    snapshot, start = Document("file:///a", "python", 1, text).snapshot(), text.index(old)
    assert breaks(snapshot, start, start + len(old), new) is expected


def test_several_threads_may_check_at_once():
    snapshot, offset = document()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: first_error(snapshot, offset, "max(w, ))) + h * 2"), range(40)))
    assert len(set(found)) == 1
    assert found[0] is not None
