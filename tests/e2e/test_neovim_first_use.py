"""What somebody meets who uses the plugin for the first time."""

import pytest

from tests.support.neovim import Desk, Neovim, rule, shows, until

MESSAGES = "return vim.api.nvim_exec2('messages', { output = true }).output"


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ("debounce = 1", 'there is no option "debounce" in setup(); "debounce_ms" is the nearest'),
        ("keys = { acept = '<C-y>' }", 'there is no option "acept" in keys; "accept" is the nearest'),
        ("enabled = 1", "enabled: expected true or false, got 1"),
        ("ghost_text = 'mine'", 'ghost_text: expected "auto", "own" or "builtin", got "mine"'),
        ("keys = { accept = true }", "keys.accept: expected a key or false, got true"),
        ("keys = { accept = '' }", 'keys.accept: expected a key or false, got ""'),
        ("filetypes = { 'lua' }", 'filetypes: expected true or false by filetype, got { "lua" }'),
        ("debounce_ms = -1", "debounce_ms: expected a number from 0, got -1"),
    ],
)
def test_a_wrong_option_is_a_note_and_the_rest_works(desk: Desk, options: str, note: str) -> None:
    desk.script([rule("", "text")])
    nvim = desk.start_attached(options=options)
    assert nvim.lua(MESSAGES).split() == ["mercury:", *note.split()]
    nvim.keys("ix")
    shows(nvim, "text")


def in_a_buffer_without_a_name(desk: Desk) -> Neovim:
    """An editor that shows "first" after an `a` there, and "second" after a `b` that is typed next."""
    desk.script([rule("a", "first"), rule("b", "second")])
    nvim = desk.start_attached()
    nvim.keys(":enew<CR>:setfiletype python<CR>")
    until(nvim.attached)
    nvim.keys("ia")
    shows(nvim, "first")
    return nvim


def test_a_buffer_without_a_name_gets_suggestions_and_so_does_the_next_one(desk: Desk) -> None:
    nvim = in_a_buffer_without_a_name(desk)
    nvim.keys("<Esc>:enew<CR>:setfiletype python<CR>")
    until(nvim.attached)
    nvim.keys("ib")
    shows(nvim, "second")
    nvim.keys("<Esc>:buffer 2<CR>")
    until(nvim.attached)
    nvim.keys("Aa")
    shows(nvim, "first")
    closed = [each["params"]["textDocument"]["uri"] for each in desk.received("textDocument/didClose")]
    assert closed == ["file://", "file://"], "the server never has two documents of one URI"
    assert desk.received("textDocument/didOpen")[-1]["params"]["textDocument"]["text"] == "a\n"


def test_ghost_text_beside_a_matching_bracket_keeps_its_own_look(desk: Desk) -> None:
    desk.script([rule("f(", "xyz")])
    nvim = desk.start_attached()
    nvim.keys("if()<Left>")
    shows(nvim, "xyz")
    nvim.lua("vim.api.nvim_set_hl(0, 'MatchParen', { fg = 0x112233 })")
    nvim.lua("vim.api.nvim_set_hl(0, 'MercuryGhost', { fg = 0x445566 })")
    nvim.lua("vim.fn.matchaddpos('MatchParen', { { 1, 2 }, { 1, 3 } })")
    colour = "vim.cmd.redraw() return vim.api.nvim__inspect_cell(1, 0, %d)[2].foreground"
    assert [nvim.lua(colour % column) for column in range(1, 6)] == [0x112233, *[0x445566] * 3, 0x112233]


def opened_and_closed(desk: Desk) -> tuple[list[str], list[str]]:
    """The names of documents that the server was told of."""
    methods = ("textDocument/didOpen", "textDocument/didClose")
    opened, closed = ([each["params"]["textDocument"]["uri"] for each in desk.received(each)] for each in methods)
    return [uri.rpartition("/")[2] for uri in opened], [uri.rpartition("/")[2] for uri in closed]


@pytest.mark.parametrize("rename", ["file", "saveas"])
def test_a_renamed_buffer_is_the_document_of_its_new_name(desk: Desk, rename: str) -> None:
    desk.script([rule("a", "first")])
    nvim = desk.start_attached()
    nvim.keys(f":{rename} {desk.folder / 'b.py'}<CR>ia")
    shows(nvim, "first")
    assert opened_and_closed(desk) == (["a.py", "b.py"], ["a.py"])
    assert desk.asked()[-1]["params"]["textDocument"]["uri"] == (desk.folder / "b.py").as_uri()
