"""The list of cursors beside a source file, and what a careless list is refused for."""

from pathlib import Path

import pytest
from mercury_lab.editing.cursors import Cursor, read_cursors

from mercury_lsp.errors import UsageError

SOURCE = "def total(prices):\n    result = sum(prices)\n    return result\n"


def listed(folder: Path, entries: str) -> list[Cursor]:
    (folder / "a.py").write_text(SOURCE, "utf-8")
    (folder / "a.py.toml").write_text(entries, "utf-8")
    return read_cursors(folder)


def test_the_marked_text_is_taken_out_and_the_rest_stays(tmp_path):
    (cursor,) = listed(tmp_path, '[[cursor]]\nplace = "body"\nat = "result = ‹sum(prices)›"\nor = ["sum(prices, 0)"]')
    assert cursor.before + cursor.after == SOURCE.replace("sum(prices)", "")
    assert cursor.before.endswith("result = ") and cursor.after.startswith("\n    return")
    assert cursor.answers == ("sum(prices)", "sum(prices, 0)")
    assert not cursor.silent


def test_typed_letters_move_the_cursor_and_drop_answers_that_begin_otherwise(tmp_path):
    (cursor,) = listed(tmp_path, '[[cursor]]\nplace = "body"\nat = "return ‹result›"\nor = ["reduced", "total"]')
    typed = cursor.typed(2)
    assert typed.before.endswith("return re") and typed.after == cursor.after
    assert typed.answers == ("sult", "duced")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('place = "body"\nat = "return result"', "needs one ‹ and one ›"),
        ('place = "body"\nat = "‹› return result"', "nothing is typed there"),
        ('place = "body"\nat = "‹result›"', "occurs 2 times in the file"),
        ('place = "body"\nat = "‹product›"', "occurs 0 times in the file"),
        ('place = "attic"\nat = "return ‹result›"', "place is 'attic'; allowed: body, argument list"),
        (
            'place = "body"\nat = "return ‹result›"\nright = ["x"]',
            "unknown key 'right'; allowed: at, or, place, silent",
        ),
    ],
)
def test_a_careless_entry_is_refused_with_its_number(tmp_path, entry, message):
    with pytest.raises(UsageError, match=r"cursor 1 of .*a\.py\.toml: ") as caught:
        listed(tmp_path, f"[[cursor]]\n{entry}")
    assert message in str(caught.value)
