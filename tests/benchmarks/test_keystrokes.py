"""The pure parts of benchmarks/keystrokes.py and memory.py: the script of keys, matching of fills."""

import json
import sys
from pathlib import Path

import httpx
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from on_keys import editor, llama_vim, script

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


def test_the_peer_types_through_an_answer_and_asks_where_the_user_types_otherwise() -> None:
    asked: list[dict[str, str]] = []

    def infill(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(200, json={"content": "name()", "timings/prompt_n": 7})

    peer = llama_vim.Plugin(httpx.Client(base_url="http://peer", transport=httpx.MockTransport(infill)), 0)
    keys = tuple(script.Key("type", at, at, text, 0.0) for at, text in enumerate("dn!", start=2))
    rows = [*peer.play("", script.Script("a\n\nb\n", keys), 3)]
    assert [row.text for row in rows] == ["name()", "ame()", "name()"]
    assert [each["prompt"] for each in asked] == ["d", "dn!"]
    assert (asked[0]["input_prefix"], asked[0]["input_suffix"]) == ("a\n", "\nb\n")
