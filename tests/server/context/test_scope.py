import pytest

from mercury_lsp.context.scope import CursorClass, classify, headers, wants_lines
from mercury_lsp.documents.document import Document, Snapshot
from mercury_lsp.documents.languages import LANGUAGES, language, language_of, parser

A, E, N, C, S, I, O = CursorClass  # noqa: E741


def at_cursor(language_id: str, marked: str) -> tuple[Snapshot, int]:
    """The snapshot of a text and the offset of its cursor, marked by a bar."""
    before, after = marked.split("|")
    return Document("file:///a", language_id, 1, before + after).snapshot(), len(before)


@pytest.mark.parametrize(
    ("language_id", "marked", "expected"),
    [
        ("python", "foo(|)", A),
        ("python", "foo(a, |)\n", A),
        ("python", "def f(a, |):\n    pass\n", A),
        ("python", "foo(a)|\n", E),
        ("python", "foo(|", A),
        ("python", "x = foo(a, |", A),
        ("python", "x = foo(\n    a,\n    |\n)\n", A),
        ("python", "x = |", E),
        ("python", "def f():\n    return |\n", E),
        ("python", "|", N),
        ("python", "def f():\n    |\n", N),
        ("python", "def f():\n    x = 1\n    |\n\nclass A:\n    pass\n", N),
        ("python", "x = 1\n|\ny = 2\n", N),
        ("python", "x = 1  # about |", C),
        ("python", "# about |\nx = 1", C),
        ("python", "x = 'ab|c'", S),
        ("python", "x = 'ab|\ny = 2\n", S),
        ("python", "x = 'abc'|\n", E),
        ("python", 'def f():\n    """Does\n    |\n    """\n', S),
        ("python", "f'{a|}'", E),
        ("python", "import |", I),
        ("python", "from os import pa|\n", I),
        ("python", "if (|", E),
        ("javascript", "foo(() => {\n  |\n})\n", N),
        ("javascript", "foo(a, |)", A),
        ("javascript", "const a = `x ${b|}`", E),
        ("javascript", "/* a |", C),
        ("javascript", "/* a */|\n", E),
        ("javascript", "/* a\n | */", C),
        ("typescriptreact", "import { a, | } from 'x'\n", I),
        ("typescript", "foo(|)", A),
        ("go", "package main\n\nfunc f() {\n\tfmt.Println(|)\n}\n", A),
        ("go", "package main\n\nfunc f() {\n\t|\n}\n", N),
        ("rust", "/// about\n|\nfn f() {}\n", N),
        ("rust", "fn f() { g(|) }", A),
        ("rust", "use std::|", I),
        ("java", "class A { void f() { g(|); } }", A),
        ("c", "#include <a.h>\n|\n", N),
        ("c", "#include <a|\n", I),
        ("cpp", "int f() {\n  |\n}\n", N),
        ("lua", "-- about |\n", C),
        ("sh", 'echo "a |"\n', S),
        ("json", '{"a": "b|"}', S),
        ("yaml", "a: |\n", E),
        ("toml", "# a|\n", C),
        ("html", "<!-- a | -->", C),
        ("css", "a { color: |; }", E),
        ("plaintext", "\n|\n", O),
    ],
)
def test_the_cursor_is_classified(language_id, marked, expected):
    assert classify(*at_cursor(language_id, marked)) is expected


@pytest.mark.parametrize(
    ("language_id", "marked", "wanted"),
    [
        ("python", "def f(x):|\n", True),
        ("python", "if x:|\n", True),
        ("python", "x = {1:|\n", False),
        ("python", "# def f(x):|\n", False),
        ("python", "def f(x):| pass\n", False),
        ("python", "def f(x):\n    |\n", True),
        ("python", "x = 1|\n", False),
        ("python", '@each("x", [\n    (1, 2),\n    |\n])\ndef f(x): pass\n', True),
        ("python", "f(\n    |\n)\n", False),
        ("javascript", "test.each([\n  [1, 2],\n  |\n]);\n", True),
        ("go", "func f() {|\n}\n", True),
        ("java", "class A { void f() { for (int x :|\n", False),
        ("javascript", "f({ case:|\n", False),
        ("lua", "if x then|\nend\n", True),
        ("shellscript", "for x in y; do|\ndone\n", True),
    ],
)
def test_lines_are_wanted_behind_an_opened_block_and_on_an_empty_line(language_id: str, marked: str, wanted: bool):
    place = at_cursor(language_id, marked)
    assert wants_lines(*place, classify(*place)) is wanted


@pytest.mark.parametrize("language_id", LANGUAGES)
def test_every_node_type_exists_in_its_grammar(language_id):
    grammar = parser(language_id).language
    rules = language(language_id)
    named = {grammar.node_kind_for_id(number) for number in range(grammar.node_kind_count)}
    used = (
        rules.comments
        | rules.strings
        | rules.imports
        | rules.definitions
        | rules.arguments
        | rules.lists
        | rules.bodies
    )
    allowed = {"string"} if not rules.strings & named else set()
    assert (used | rules.embedded) - allowed <= named


@pytest.mark.parametrize("language_id", [*LANGUAGES, "plaintext"])
@pytest.mark.parametrize("text", ["", "\0", "((((", "}}}}", "'\"`", "\ud800\n", "def f(\n  'a\n{[ # /* <!--\n\n"])
def test_broken_text_is_classified_everywhere(language_id, text):
    snapshot = Document("file:///a", language_id, 1, text).snapshot()
    for offset in range(len(text) + 1):
        assert classify(snapshot, offset) in CursorClass
        assert isinstance(headers(snapshot, offset, offset), str)


PYTHON = """\
import os
from sys import (
    path,
)

class A(B):
    x = 1

    def f(
        self,
    ):
        y = 2
        |
"""


def test_headers_are_imports_and_enclosing_definitions_outermost_first():
    snapshot, offset = at_cursor("python", PYTHON)
    assert headers(snapshot, offset, offset) == (
        "import os\nfrom sys import (\n    path,\n)\nclass A(B):\n    def f(\n        self,\n    ):\n"
    )


def test_a_path_tells_its_language():
    names = ["a/b.py", "c.TSX", "x.rs", "y.yml", "Makefile", "z.h"]
    assert [language_of(name) for name in names] == [
        "python",
        "typescriptreact",
        "rust",
        "yaml",
        "plaintext",
        "c",
    ]
