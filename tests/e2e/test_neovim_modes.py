"""The Neovim plugin where keys or text are not as usual: interrupted, pasted, recorded, blockwise, in snippets."""

from __future__ import annotations

import pytest

from tests.support.editor import COMMAND, script
from tests.support.neovim import Desk, rule, shows, until


def test_ctrl_c_hides_the_text_and_stops_what_is_asked(desk: Desk) -> None:
    desk.script([rule("x", "one")])
    nvim = desk.start_attached()
    nvim.keys("ix")
    shows(nvim, "one")
    nvim.keys("<C-c>")
    assert nvim.lua("return vim.fn.mode()") == "n"
    shows(nvim, "")
    nvim.rest()
    assert nvim.ghost() == ""


@pytest.mark.parametrize("fileformat", ["unix", "dos"])
def test_a_bare_carriage_return_is_a_character_of_its_line(desk: Desk, fileformat: str) -> None:
    end = "\r\n" if fileformat == "dos" else "\n"
    text = end.join((script(text="suggested").rstrip("\n"), "a = 1\rb = 2", "c = 3", ""))
    nvim = desk.start_attached(text, cmd=COMMAND)
    assert nvim.lua("return vim.bo.fileformat") == fileformat
    nvim.keys("Gox = ")
    shows(nvim, "suggested")
    nvim.keys("<Tab><Esc>")
    until(lambda: nvim.lines()[1:] == ["a = 1\rb = 2", "c = 3", "x = suggested"])
    nvim.lua("vim.api.nvim_buf_set_lines(0, 1, 1, true, { 'd\\re', 'f' })")
    nvim.keys("Goy = ")
    shows(nvim, "suggested")


def test_with_paste_nothing_is_shown_because_no_key_takes_it(desk: Desk) -> None:
    desk.script([rule("x", "one")])
    nvim = desk.start_attached()
    nvim.keys("ix")
    shows(nvim, "one")
    nvim.lua("vim.o.paste = true")
    shows(nvim, "")
    asked = len(desk.asked())
    nvim.keys("<CR>x")
    nvim.rest()
    assert (nvim.ghost(), len(desk.asked())) == ("", asked)
    nvim.lua("vim.o.paste = false")
    nvim.keys("<CR>x")
    shows(nvim, "one")


def test_while_a_macro_is_recorded_nothing_is_shown(desk: Desk) -> None:
    desk.script([rule("x", "one")])
    nvim = desk.start_attached()
    nvim.keys("qqix")
    nvim.rest()
    assert (nvim.ghost(), desk.asked()) == ("", [])
    nvim.keys("<M-]><Esc>q@q")
    until(lambda: nvim.lines() == ["xx"])
    nvim.keys("ox")
    shows(nvim, "one")


@pytest.mark.parametrize("key", ["I", "A", "c"])
def test_a_blockwise_insert_takes_the_first_line_only(desk: Desk, key: str) -> None:
    desk.script([rule("x", "one\ntwo")])
    nvim = desk.start_attached("a1\nb2\nc3\n")
    nvim.keys(f"<C-v>jj{key}x")
    shows(nvim, "one")
    nvim.keys("<Tab><Esc>")
    lines = {"I": "xone{0}{1}", "A": "{0}xone{1}", "c": "xone{1}"}[key]
    until(lambda: nvim.lines() == [lines.format(*each) for each in ("a1", "b2", "c3")])
    nvim.keys("Gox")
    shows(nvim, "one\ntwo")


def test_in_a_snippet_tab_goes_to_the_next_stop(desk: Desk) -> None:
    desk.script([rule("f(x", "one")])
    nvim = desk.start_attached()
    nvim.keys("i")
    nvim.lua("vim.snippet.expand('f($1, $2)')")
    nvim.keys("x")
    shows(nvim, "one")
    nvim.keys("<Tab>")
    until(lambda: nvim.lua("return vim.api.nvim_win_get_cursor(0)") == [1, 5])
    assert nvim.lines() == ["f(x, )"]
