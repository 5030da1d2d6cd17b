"""Where a text of several lines has said one thing."""

import pytest
from mercury_engine.text.thought import definition_end, thought_end


def one_thought(text: str, line: str = "") -> str:
    end = thought_end(text, line)
    return text if end is None else text[:end]


def test_no_second_function_follows_the_first():
    assert one_thought("def f(x):\n    return x\n\n\ndef g():") == "def f(x):\n    return x"
    assert one_thought("\n\treturn x\n}\n\nfunc g", "func f() {") == "\n\treturn x\n}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("if x:\n        a\n    else:\n        b", "    "),
        ("try {\n    a();\n} catch (e) {\n    b();\n}", ""),
        ("\n        a\n    }", "    if x {"),
        ("\n  a()\nend", "if x then"),
    ],
)
def test_what_closes_or_continues_a_block_belongs_to_it(text, line):
    assert thought_end(text, line) is None


@pytest.mark.parametrize(("text", "line"), [("a = 1", ""), ("\n", "def f(x):"), ("a = 1\n    ", "    "), ("", "")])
def test_a_line_that_has_only_begun_does_not_end_a_thought(text, line):
    assert thought_end(text, line) is None


METHOD = "class Till:\n    def total(self):\n        rows = self.rows\n"


@pytest.mark.parametrize(
    ("text", "line", "above", "kept"),
    [
        ("return 1\n\n    def other(self):", "        ", METHOD, "return 1"),
        ("        return 1\n\n\nclass Other:", "", METHOD, "        return 1"),
        (
            "if rows:\n            go()\n        return rows\n    x = 1",
            "        ",
            METHOD,
            "if rows:\n            go()\n        return rows",
        ),
        ("def f(x):\n    return x\n\n\ndef g(x):", "", "import os\n", "def f(x):\n    return x"),
        ("\n    return x\nprint(f(1))", "def f(x):", "", "\n    return x"),
    ],
)
def test_what_is_asked_for_by_key_ends_with_its_definition(text, line, above, kept):
    end = definition_end(text, line, above)
    assert end is not None
    assert text[:end] == kept


@pytest.mark.parametrize(
    ("text", "line", "above"),
    [
        ("a = 1\n\nb = 2\nfor x in y:\n    z(x)\nw()", "", "import os\n"),
        ("go();\n}", "  ", "function f() {\n"),
        ("go()\nend", "  ", "local function f()\n"),
        ("one line", "    ", "def f():\n"),
    ],
)
def test_outside_definitions_and_at_their_closing_lines_it_goes_on(text, line, above):
    assert definition_end(text, line, above) is None
