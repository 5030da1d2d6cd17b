"""Texts that are only marked until a key shows them, in a real Neovim."""

from __future__ import annotations

from tests.support.neovim import Desk, rule, shows, until

SUBTLE = 'settings = { display = "subtle" }'

MARK = "…"

COMMAND = {"title": "Accepted", "command": "mercury.accepted", "arguments": ["17"]}


def test_a_text_is_marked_and_no_key_takes_it_until_it_is_shown(desk: Desk) -> None:
    item = {"insertText": "a, b)", "command": COMMAND}
    desk.script([{"before": "def add(", "result": {"items": [item]}}])
    nvim = desk.start_attached(options=SUBTLE)
    nvim.keys("idef add(")
    shows(nvim, MARK)
    nvim.keys("<M-w>")
    assert nvim.lines() == ["def add("]
    nvim.keys("<M-s>")
    shows(nvim, "a, b)")
    [told] = until(lambda: desk.received("textDocument/didShowCompletion"))
    assert told["params"] == {"item": {"command": COMMAND}}
    nvim.keys("<Tab>")
    until(lambda: nvim.lines() == ["def add(a, b)"])


def test_the_mark_stays_while_the_text_is_typed_and_goes_with_anything_else(desk: Desk) -> None:
    desk.script([rule("x = ", "value")])
    nvim = desk.start_attached(options=SUBTLE)
    nvim.keys("ix = ")
    shows(nvim, MARK)
    asked = len(desk.asked())
    nvim.keys("va")
    shows(nvim, MARK)
    assert len(desk.asked()) == asked
    nvim.keys("<M-s>")
    shows(nvim, "lue")
    nvim.keys("n")
    until(lambda: len(desk.asked()) > asked)
    shows(nvim, "")


def test_the_key_asks_where_nothing_is_marked_and_shows_the_answer(desk: Desk) -> None:
    desk.script([{"before": "x = ", "trigger": 2, "result": {"items": []}}, rule("x = ", "value")])
    nvim = desk.start_attached(options=SUBTLE)
    nvim.keys("ix = ")
    until(lambda: desk.asked() and desk.answered_last())
    assert nvim.ghost() == ""
    nvim.keys("<M-s>")
    shows(nvim, "value")
    assert desk.asked()[-1]["params"]["context"] == {"triggerKind": 1}
