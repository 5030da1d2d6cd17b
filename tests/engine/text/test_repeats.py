import pytest
from mercury_engine.text.repeats import repeat_begun, repeat_start


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
