"""Changes of a call's arguments, repeated in other calls of the same name."""

import pytest

from mercury_lsp.completion.next_edits.calls import call_around, calls, with_same_change
from tests.support.next_edit_desk import NextEditDesk


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "def f(a):\n    f(1)\n    f(2)\n"),
        ("javascript", "function f(a) {\n  f(1)\n  f(2)\n}\n"),
        ("javascript", "class A {\n  f(a) {\n  f(1)\n  f(2)\n}}\n"),
        ("c", "int f(int a);\nint x() { f(1);\n f(2); }\n"),
        ("cpp", "int A::f(int a) {\n f(1);\n f(2); }\n"),
        ("rust", "fn f(a: i32) {\n    f(1);\n    f(2);\n}\n"),
        ("go", "func f(a int) {\n\tf(1)\n\tf(2)\n}\n"),
        ("java", "class A { void f(int a) {\n    f(1);\n    f(2);\n} }\n"),
        ("typescript", "function f(a: number): void;\nfunction g() { f(1);\n f(2) }\n"),
        ("lua", "function f(a)\n  f(1)\n  f(2)\nend\n"),
    ],
)
def test_a_definition_is_no_call(language, text):
    desk = NextEditDesk(text, language)
    desk.type(desk.find("f(1") + 3, ", true")
    assert desk.texts(invoked=True) == [("f(2)", "f(2, true)")]
    desk = NextEditDesk(text, language)
    desk.type(desk.find(")"), ", b")
    assert desk.texts(invoked=True) == []


def test_calls_of_a_line_are_found_with_their_arguments():
    found = {call.name: call.arguments for call in calls("x = f(a, g(b, '),('), [1, 2]) + h()")}
    assert found == {"f": ("a", "g(b, '),(')", "[1, 2]"), "g": ("b", "'),('"), "h": ()}


@pytest.mark.parametrize(
    ("old", "new", "other", "expected"),
    [
        ("f(a)", "f(a, k=1)", "f(b)", "f(b, k=1)"),
        ("f(a, k=1)", "f(a)", "f(b, k=1)", "f(b)"),
        ("f(a, k=1)", "f(a)", "f(b)", None),
        ("f(a)", "f(c, a)", "f(b, d)", "f(c, b, d)"),
        ("f(a)", "f(a, k)", "f(b, k)", None),
        ("f(a)", "f(a, k)", "g(b)", None),
        ("f(a)", "f(b)", "f(c)", None),
        ("f()", "f(a)", "f()", "f(a)"),
    ],
)
def test_other_calls_are_changed_at_the_same_end_of_their_arguments(old, new, other, expected):
    made = [next(iter(calls(text))) for text in (old, new, other)]
    assert with_same_change(*made) == expected


def test_the_innermost_call_around_an_offset_is_found():
    line = "f(g(a), b)"
    assert call_around(line, 4, 5).name == "g"
    assert call_around(line, 8, 9).name == "f"
    assert call_around(line, 0, 1) is None
