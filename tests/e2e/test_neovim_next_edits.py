"""The last change made elsewhere, in a real Neovim over the real server with an engine that agrees to everything."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.editor import script
from tests.support.neovim import Desk, until

SERVER = [sys.executable, str(Path(__file__).parents[1] / "support" / "fake_server.py")]

TEXT = script(confidence=0.1) + "def f(count):\n    𝒳 = count\n    return count\n"


def test_who_renamed_a_name_goes_on_to_its_other_places_until_there_is_none(desk: Desk) -> None:
    nvim = desk.start_attached(TEXT, cmd=SERVER)
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 2, 6 })")
    nvim.keys("ciwtotal<Esc>")
    until(lambda: nvim.lines()[1] == "def f(total):")
    nvim.keys(":Mercury next_edit<CR>")
    until(lambda: nvim.lines()[2] == "    𝒳 = total")
    until(lambda: nvim.lua("return vim.api.nvim_win_get_cursor(0)")[0] == 3)
    nvim.keys(":Mercury next_edit<CR>")
    until(lambda: nvim.lines()[3] == "    return total")
    until(lambda: nvim.lua("return vim.api.nvim_win_get_cursor(0)")[0] == 4)
    nvim.keys(":Mercury next_edit<CR>")
    until(lambda: "no next edit" in nvim.lua("return vim.fn.execute('messages')"))
    assert nvim.lines()[1:] == ["def f(total):", "    𝒳 = total", "    return total"]


def test_without_a_server_there_is_nobody_to_ask(desk: Desk) -> None:
    nvim = desk.start(TEXT, options="filetypes = { python = false }")
    assert nvim.lua("return require('mercury').next_edit()") is False
