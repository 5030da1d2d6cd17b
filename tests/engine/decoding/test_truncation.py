"""Only the meaningful part of an unfinished text is shown."""

import pytest
from mercury_engine.decoding.truncation import truncated


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
