"""Where an unfinished text may end."""

import pytest
from mercury_engine.text.boundaries import closing_of, ends_whole


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
