"""The pure parts of benchmarks/keystrokes.py and memory.py: the script of keys, matching of fills, figures."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from on_keys import editor, figures, script

TEXT = "".join(f"def name_{i}(argument):\n    return argument + {i}\n\n" for i in range(60))


def typed(seed: int) -> script.Script:
    return script.retyped(TEXT, *script.lines_to_type(TEXT, 300, seed), seed)


def final(made: script.Script) -> str:
    return [text for _, text in made.states()][-1]


@pytest.mark.parametrize("seed", range(8))
def test_what_is_typed_in_the_end_is_the_file(seed: int) -> None:
    made = typed(seed)
    assert made.text != TEXT
    assert final(made) == TEXT


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


def test_the_parts_of_a_latency_add_up_to_it() -> None:
    one = row(1.0, 2.0)
    one.fill = {"asked": 1.1, "begun": 1.2, "read": 1.4, "ended": 1.9, "steps": 2, "tokens_read": 1}
    parts = one.parts()
    assert {name: round(ms) for name, ms in parts.items()} == {
        "server": 200,
        "queue": 100,
        "encode": 200,
        "denoise": 500,
        "rewrite": 0,
    }
    assert sum(parts.values()) == pytest.approx(one.milliseconds)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.sampled_from(figures.PERCENTILES))
def test_a_percentile_is_the_smallest_value_that_covers_its_share(values: list[float], percent: int) -> None:
    found = figures.percentile(values, percent)
    assert found in values
    assert sum(v <= found for v in values) * 100 >= percent * len(values)
    assert sum(v < found for v in values) * 100 < percent * len(values)


def test_a_ratio_above_one_means_that_we_are_faster_and_ignores_a_drifting_machine() -> None:
    assert figures.ratio([2.0, 20.0, 200.0], [1.0, 10.0, 100.0]) == 2.0
