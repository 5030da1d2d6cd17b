"""A text of several lines stops at what stands below it."""

import pytest
from mercury_engine.text.overrun import overrun


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
