"""The differences that a next edit is drawn and taken by."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.support.neovim import Desk

PIECES = ["def f(a):", "    return a", "", "x = 1", "    y = größe(x, 2)", "\tz", "a", "  ", "s = '😀'"]

WALK = """
local spans = require("mercury.spans")
local taken = {}
for _, pair in ipairs(vim.json.decode(_G.pairs_given)) do
  local old, new = unpack(pair)
  local of_pair = { spans.apply(old, spans.between(old, new)) == new }
  for _, piece in ipairs({ "word", "line" }) do
    local text, steps = old, 0
    while text ~= new and steps < 200 do
      text, steps = spans.apply(text, spans.part(text, spans.between(text, new), piece)), steps + 1
    end
    table.insert(of_pair, text == new)
  end
  table.insert(taken, of_pair)
end
return taken
"""


def pairs(count: int) -> list[list[str]]:
    random = Random(7)

    def text() -> str:
        return "\n".join(random.choices(PIECES, k=random.randint(1, 5)))

    return [[text(), text()] for _ in range(count)]


def between(desk: Desk, *given: list[str]) -> Any:
    nvim = desk.start_attached()
    nvim.lua(f"_G.pairs_given = {json.dumps(json.dumps(given))} return true")
    return nvim.lua(
        "return vim.tbl_map(function(pair) return require('mercury.spans').between(unpack(pair)) end, "
        "vim.json.decode(_G.pairs_given))"
    )


def test_the_spans_make_the_new_text_at_once_and_by_words_and_by_lines(desk: Desk) -> None:
    given = pairs(300)
    nvim = desk.start_attached()
    nvim.lua(f"_G.pairs_given = {json.dumps(json.dumps(given))} return true")
    wrong = [pair for pair, made in zip(given, nvim.lua(WALK), strict=True) if made != [True, True, True]]
    assert wrong == []


def test_words_that_stay_are_in_no_span_and_new_lines_are_spans_of_their_own(desk: Desk) -> None:
    spans = between(
        desk,
        ["total = count + 1", "total = number + 1"],
        ["a\nb", "a\nnew\nb"],
        ["a", "a\nnew"],
        ["a\nold\nb", "a\nb"],
        ["f(a, b)", "f(b, a)"],
        ["one two three four", "1 2 3 4"],
    )
    assert spans == [
        [{"start": 8, "stop": 13, "text": "number"}],
        [{"start": 2, "stop": 2, "text": "new\n"}],
        [{"start": 1, "stop": 1, "text": "\nnew"}],
        [{"start": 2, "stop": 6, "text": ""}],
        [{"start": 2, "stop": 6, "text": "b, a"}],
        [{"start": 0, "stop": 18, "text": "1 2 3 4"}],
    ]
