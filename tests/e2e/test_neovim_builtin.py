"""Neovim 0.12 has inline completion of its own, which the plugin uses there."""

from typing import Any

from tests.support.neovim import Desk, Neovim, until

NAMESPACE = "nvim.lsp.inline_completion"
SUM = "return one + two"

BUILTIN = """
_G.calls = {}
local function note(name) return function(...) table.insert(calls, { name, ... }); return true end end
vim.lsp.inline_completion = { enable = note("enable"), select = note("select"), get = function(opts)
  table.insert(calls, { "get" })
  if opts and opts.on_accept then opts.on_accept(_G.item) end
  return true
end }
"""


def test_neovims_own_inline_completion_is_used_where_it_exists(desk: Desk) -> None:
    """Against a stand-in: the calls are those that Neovim 0.12 documents."""
    nvim = desk.start_attached(before=BUILTIN)
    nvim.keys("ix = <Tab><M-]><M-[>")
    assert nvim.lua("return calls") == [
        ["enable", True, {"bufnr": 1}],
        ["get"],
        ["select", {"count": 1}],
        ["select", {"count": -1}],
    ]
    assert desk.asked() == []
    nvim.lua("_G.item = { insert_text = 'x = one + two', range = { start_col = 0, end_col = 4 } }")
    nvim.keys("<M-w>")
    until(lambda: nvim.lines() == ["x = one"])


def item(text: str, **more: Any) -> dict[str, Any]:
    """An item with a range at column 4, which is what the server always sends."""
    at = {"line": 0, "character": 4}
    return {"insertText": text, "range": {"start": at, "end": at}, **more}


def answer(*texts: str, before: str = "x = ") -> dict[str, Any]:
    return {"before": before, "result": {"items": [item(text) for text in texts]}}


def shows(nvim: Neovim, text: str) -> None:
    until(lambda: nvim.ghost(NAMESPACE) == text)


def showing(desk: Desk, *texts: str) -> Neovim:
    """A Neovim that shows the first of the texts behind `x = `."""
    desk.script([answer(*texts)])
    nvim = desk.start_attached()
    nvim.keys("ix = ")
    shows(nvim, texts[0])
    return nvim


def test_the_real_one_shows_and_tab_inserts(desk_0_12: Desk) -> None:
    nvim = showing(desk_0_12, SUM)
    assert nvim.painted() == []
    nvim.keys("<Tab>")
    until(lambda: nvim.lines() == ["x = " + SUM])
    shows(nvim, "")


def test_the_real_one_inserts_a_word_or_a_line(desk_0_12: Desk) -> None:
    nvim = showing(desk_0_12, "one +\n  two")
    nvim.keys("<M-w>")
    until(lambda: nvim.lines() == ["x = one"])
    nvim.keys("<C-u>x = ")
    shows(nvim, "one +\n  two")
    nvim.keys("<M-l>")
    until(lambda: nvim.lines() == ["x = one +"])


def test_in_the_real_one_null_keeps_what_is_shown_and_an_empty_list_clears_it(desk_0_12: Desk) -> None:
    nvim = showing(desk_0_12, "one")
    for result, left in ((None, "ne"), ({"items": []}, "")):
        desk_0_12.script([{"before": "x = o", "result": result}])
        asked = len(desk_0_12.asked())
        nvim.keys("o")
        until(lambda asked=asked: len(desk_0_12.asked()) > asked)
        until(desk_0_12.answered_last)
        nvim.read_all_replies()
        assert nvim.ghost(NAMESPACE) == left
        nvim.keys("<BS>")


def test_on_the_newer_neovim_our_own_ghost_text_works_too(desk_0_12: Desk) -> None:
    desk_0_12.script([answer(SUM)])
    nvim = desk_0_12.start_attached(options="ghost_text = 'own'")
    nvim.keys("ix = ")
    until(lambda: nvim.ghost() == SUM)
    nvim.keys("<Tab>")
    until(lambda: nvim.lines() == ["x = " + SUM])
