import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_lsp.completion.postprocessing import postprocess
from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document


def postprocessed(marked: str, fill: str, language_id: str = "python") -> str:
    """The part of a fill at the bar that is shown."""
    before, after = marked.split("|")
    snapshot = Document("file:///a", language_id, 1, before + after).snapshot()
    return postprocess(fill, ContextBuilder().build(snapshot, len(before), None), snapshot)


@pytest.mark.parametrize(
    ("marked", "fill", "expected"),
    [
        ("x = |\n", "1\ny = 2", "1"),
        ("x = |\n", "1\r\ny = 2", "1"),
        ("x = |\n", "\n1", ""),
        ("foo(|)", "a, b)", "a, b"),
        ("foo(|)", "bar(a)", "bar(a)"),
        ("foo(|)", "bar(a))", "bar(a)"),
        ("foo(bar(|)", "x)", "x)"),
        ("foo(bar(|)", "x))", "x)"),
        ("foo(bar(|))", "x))", "x"),
        ("foo([|])", "x])", "x"),
        ("foo(|)\n", "a)  # why", "a)  # why"),
        ("foo(| )", "a)", "a"),
        ('print("hello w|)', 'orld")', 'orld"'),
        ('names = ["ann", "ca|]', 'rl"]', 'rl"'),
        ('f("a|", b)', " (1)", " (1)"),
        ("f('a', \"b|)", '")', '"'),
        ("it's foo(|)", "a)", "a"),
        ("foo(|)", "a);", "a"),
        ('foo("|")', 'abc")', "abc"),
        ('foo(| + "c")', '"a" + "b"', '"a" + "b"'),
        ("foo(|, b)", "a, b)", "a"),
        ("x = | + 1\n", "y + 1", "y"),
        ("re|turn x", "turn x", ""),
        ("x = |\n", "y  ", "y"),
        ("return |x\n", "not ", "not "),
        ("foo(|)", "x ", "x"),
        ("x = |\n", "   ", ""),
        ("x = |\n", "", ""),
        ("struct A {\n    a: B,\n|}\n", "    b: Option<String>", ""),
        ("switch {\n|\t}\n", "\tdefault:", ""),
        ("foo(\n    |)\n", "a, b", "a, b"),
    ],
)
def test_a_fill_of_one_line_is_postprocessed(marked, fill, expected):
    assert postprocessed(marked, fill) == expected


@pytest.mark.parametrize(
    ("marked", "fill", "expected"),
    [
        ("def f():\n    |\n    return x\n", "x = 1\n    return x", "x = 1"),
        ("def f():\n    |\n    return x\n", "x = 1\n\n    return x\n", "x = 1"),
        ("def f():\n    |\n    return x\n", "return x", ""),
        ("def f():\n    |\n\n    y = 1\n    return x\n", "x = 1\n    y = 1\n    return x", "x = 1"),
        ("def f():\n    |\n    return x\n", "if x:\n        return x", "if x:\n        return x"),
        ("def f():\n    |\n", "x = 1\n\n    y = 2\n", "x = 1\n\n    y = 2"),
    ],
)
def test_lines_that_already_follow_are_dropped(marked, fill, expected):
    assert postprocessed(marked, fill) == expected


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        ("        return 0;\n    free(p);\n}\n", "ULL)"),  # the body ends without a brace
        ("        for (;;) {\n            f();\n        }\n    free(p);\n}\n", "ULL)"),
        ("        return 0;\n    }\n}\n", "ULL) {"),
        ("        return 0;\n        }\n    free(p);\n}\n", "ULL) {"),
        ("        return 0;\n    out:\n        f();\n    }\n}\n", "ULL) {"),
        ("    free(p);\n}\n", "ULL) {"),  # no body yet
        ("        return 0;\n", "ULL) {"),  # the end is not in sight
    ],
)
def test_a_brace_that_the_body_below_does_without_is_dropped(below, expected):
    assert postprocessed("void f(char *p) {\n    if (p == N|\n" + below, "ULL) {", "c") == expected


def test_a_brace_is_kept_where_no_condition_stands():
    assert postprocessed("usage() |\n  cat <<EOF\nusage\nEOF\n}\n", "{", "shellscript") == "{"


SOME = st.text("ab()[]{}\"' ,;\n\r\\", max_size=12)


@given(SOME, SOME, SOME)
def test_a_postprocessed_fill_is_a_prefix_of_the_fill_and_closes_what_it_opens(before, after, fill):
    kept = postprocessed(f"{before}|{after}", fill)
    assert fill.startswith((kept, kept.rstrip(")]}")))
    assert kept == "" or kept.strip()
