"""The pure parts of benchmarks/keystrokes.py and memory.py: the script of keys, matching of fills."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from on_keys import editor, script

TEXT = "".join(f"def name_{i}(argument):\n    return argument + {i}\n\n" for i in range(60))


@pytest.mark.parametrize("seed", range(8))
def test_what_is_typed_in_the_end_is_the_file(seed: int) -> None:
    made = script.retyped(TEXT, *script.lines_to_type(TEXT, 300, seed), seed)
    assert made.text != TEXT
    assert [text for _, text in made.states()][-1] == TEXT


def row(sent: float, answered: float) -> editor.KeyTimes:
    return editor.KeyTimes("type", sent, answered, shown=True, text="x")


def fill(asked: float, ended: float, steps: int | None = 3) -> dict[str, float | int | None]:
    return {"asked": asked, "begun": asked, "read": asked, "ended": ended, "steps": steps, "tokens_read": 2}


def test_a_key_gets_the_fill_between_its_sending_and_its_answer() -> None:
    rows = [row(1.0, 2.0), row(3.0, 4.0), row(5.0, 6.0)]
    ahead, own, cancelled = fill(2.1, 2.9), fill(3.1, 3.9), fill(5.1, 5.2, None)
    editor.match(rows, [fill(1.1, 1.9), ahead, own, cancelled])
    assert rows[0].fill == fill(1.1, 1.9)
    assert rows[1].fill == own
    assert rows[2].fill is None, "a cancelled fill answers nothing"
