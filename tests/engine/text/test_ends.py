"""Where a text ends: before what stands below it, with its thought or definition, at a repeat."""

import pytest
from mercury_engine.text.ends import definition_end, overrun, repeat_begun, repeat_start, thought_end


@pytest.mark.parametrize(
    ("line_prefix", "text", "following", "kept"),
    [
        (
            "    file:",
            'write("x")\n    file:close()\n    return true\nend',
            "\n    return true\nend\n",
            'write("x")\n    file:close()',
        ),
        ("  ", "count++;\n}\n\nint main() {", "\n}\n", "count++;"),
        ("    ", "total += row\n    return total_of(rows)", "\n    log()\n    return total_of(rows)\n", "total += row"),
        ("    ", "total += row\n        return total_of(rows)", "\n    return total_of(rows)\n", "total += row"),
        ("if (x) {", "\n  go();\n}", "\n}\n", "\n  go();"),
        ("call(", "\n  a,\n)", "\n)\n", "\n  a,"),
        ("", "if (x) {\n  first(second);\n}", "\nfirst(second);\n", ""),
        ("    a = 1,", "\n    b = 2", "\n    b = 2,\n", ""),
    ],
)
def test_it_stops_before_a_line_that_stands_below_or_closes_too_much(line_prefix, text, following, kept):
    end = overrun(text, line_prefix, following)
    assert end is not None
    assert text[:end] == kept


@pytest.mark.parametrize(
    ("line_prefix", "text", "following"),
    [
        ("if (x) {", "\n  go();\n}", "\nrest();\n"),
        ("call(", "\n  a,\n)", "\nnext()\n"),
        ("  ", "if (x) {\n    return;\n  }", "\n  return;\n"),
        ("    ", "return nil\nend", "\n    x = 1\n    return nil\n"),
        ("    ", 'x = ":)"\n    y = 2', "\n    z = 3\n"),
        ("    ", "one line", ""),
        ("    ", "x = total_of(rows)\n    return self.rows", "\n\n  def other(self):\n    return self.rows\n"),
    ],
)
def test_it_goes_on_where_it_belongs(line_prefix, text, following):
    assert overrun(text, line_prefix, following) is None


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


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("a()\nb()", None),
        ("a()\na()", 1),
        ("if x:\n    return x\nreturn x", None),
        ("a()\n\nb()\n\na()\n\nb()", None),
        ("a()\nb()\n\na()\nb()\n", 3),
        ("a()\nb()\n  a()\n  b()", 2),
        ("}\n}\n}", None),
        ("0,\n0,\n0,", None),
        ("f(1)\nf(2)\nf(3)", None),
        ("f(1)\nf(2)\nf(3)\nf(4)\nf(5)", 3),
        ("a = 1\nb = 1\nc = 1\nd = 1", None),
    ],
)
def test_a_repeat_begins_where_lines_stand_a_second_time_right_below(text: str, start: int | None):
    lines = text.split("\n")
    assert repeat_start(lines) == start
    found = [repeat_start(lines[:end], end - 1) for end in range(1, len(lines) + 1)]
    assert next((each for each in found if each is not None), None) == start, "line by line it is the same"


@pytest.mark.parametrize("block", [["a()", "b()"], ["for x in y:", "    f(x)", "    g(x)", "", "h()"]])
def test_what_is_cut_off_at_a_repeat_was_held_back_before(block: list[str]):
    for count in range(1, len(block)):
        assert repeat_begun([*block, *block[:count]]) == count
    assert repeat_begun(block) == 0
