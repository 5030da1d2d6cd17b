"""The differences that a next edit is drawn and taken by."""

from __future__ import annotations

import json
from typing import Any

from tests.support.neovim import Desk


def between(desk: Desk, *given: list[str]) -> Any:
    nvim = desk.start_attached()
    nvim.lua(f"_G.pairs_given = {json.dumps(json.dumps(given))} return true")
    return nvim.lua(
        "return vim.tbl_map(function(pair) return require('mercury.spans').between(unpack(pair)) end, "
        "vim.json.decode(_G.pairs_given))"
    )


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
