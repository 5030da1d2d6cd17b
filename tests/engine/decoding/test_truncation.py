"""Only the meaningful part of an unfinished text is shown."""

import pytest
from mercury_engine.decoding.truncation import closing_of, ends_whole, truncated


@pytest.mark.parametrize(
    ("text", "behind", "shown"),
    [
        ("n", " const", "n"),
        ("n", "s", ""),
        ("n", "\ufffd", ""),
        ("n", "", "n"),
        ("n", None, ""),
        ("self.value", " +", "self.value"),
        ("self.value", "s", "self"),
        ("call(", "x", "call"),
        ("", " x", ""),
        ('"', "select", ""),
        ('"', " x", ""),
    ],
)
def test_an_unfinished_text_is_shown_up_to_its_last_whole_word(text, behind, shown):
    assert truncated(text, behind) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('"Content-Type", "', '"Content-Type"'),
        ('name = "', "name"),
        ("value = '''", "value"),
        ("push(`", "push"),
        ("total += (", "total"),
        ('("a", [', '("a"'),
        ('"""Return the', '"""Return the'),
        ("it's \"", "it's"),
    ],
)
def test_nothing_dangles_at_the_end(text, shown):
    assert truncated(text, " x") == shown


@pytest.mark.parametrize(
    ("text", "behind", "shown"),
    [
        ("self.total / len(self.values", ")", "self.total / len(self.values)"),
        ("self.total / len(self.values", ")\n", "self.total / len(self.values)"),
        ('print("hello', '")', 'print("hello")'),
        ("[f(x", ")]", "[f(x)]"),
        ("[f(x", "])", "[f(x"),
        ("f(x", ", y)", "f(x"),
        ("x", ")", "x"),
        ("f(x)", ")", "f(x)"),
        ('f("a', ")", 'f("a'),
        (r'f("a\"b', '"', r'f("a\"b"'),
        ("f(val", "ue)", "f"),
    ],
)
def test_the_best_guess_closes_what_the_text_has_opened(text, behind, shown):
    assert truncated(text, behind) == shown


@pytest.mark.parametrize(
    ("line_prefix", "text", "rest"),
    [
        ("total += ", "item.price * item.count", "\n"),
        ("total += ", "item.price", "; print"),
        ("f(", "first", ", second)"),
        ("f(", "first", ")"),
        ("    ", "first", ",\n    second"),
        ("if ", "is_open", ":"),
        ('print("', "hello", '")'),
        ("print(", '"hello"', ")"),
        ('print("', "hello", " world"),
        ('print("', 'hello", name', ")"),
        ("x = ", "y;", ""),
    ],
)
def test_a_text_may_end_with_a_line_a_statement_or_an_argument(line_prefix, text, rest):
    assert ends_whole(text, rest, line_prefix)


@pytest.mark.parametrize(
    ("line_prefix", "text", "rest"),
    [
        ("total += ", "item.price", " * item.count"),
        ("throw ", "new Error", "(message)"),
        ("row = ", "cursor.fetchone", "()[0]"),
        ("user = ", 'os.environ.get("SMTP_USER"', ', "")'),
        ("user = ", 'os.environ.get("SMTP_USER', '")'),
        ("return [", "s for s in all if s", ".is_open]"),
        ("a", " = b", ", c = d"),
        ("x = ", "std", "::move(y)"),
        ("x = ", "y", ""),
        ("x = ", "1 if", " y else 2"),
        ("x = ", "'it", " is"),
        ('f("', 'EUR", date(2024', ", 4, 2))"),
    ],
)
def test_it_ends_nowhere_else(line_prefix, text, rest):
    assert not ends_whole(text, rest, line_prefix)


@pytest.mark.parametrize(
    ("rest", "closing"), [(")\n", ")"), ("}, [])  \n", ""), (" });\r\n  next", " });"), ("):\n", "):"), (",\n", ",")]
)
def test_what_closes_a_line_is_brackets_and_marks_alone(rest, closing):
    assert closing_of(rest, "") == closing
