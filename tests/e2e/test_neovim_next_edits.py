"""The last change made elsewhere, in a real Neovim over the real server with an engine that agrees to everything."""

from __future__ import annotations

import pytest

from tests.support.editor import COMMAND, script
from tests.support.neovim import Desk, Neovim, until

TEXT = script(confidence=0.1) + "def f(count):\n    𝒳 = count\n    return count\n"


def test_who_renamed_a_name_goes_on_to_its_other_places_until_there_is_none(desk: Desk) -> None:
    nvim = desk.start_attached(TEXT, cmd=COMMAND)
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
    until(lambda: "no next edit" in nvim.ghost("mercury.notes"))
    assert nvim.lines()[1:] == ["def f(total):", "    𝒳 = total", "    return total"]


def drawn(nvim: Neovim) -> str:
    return nvim.ghost("mercury.next_edits")


def renamed(desk: Desk, text: str = TEXT, options: str = "") -> Neovim:
    """The name in the second line changed, and the next place drawn."""
    nvim = desk.start_attached(text, cmd=COMMAND, options=options)
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 2, 6 })")
    nvim.keys("ciwtotal<Esc>")
    until(lambda: "total" in drawn(nvim) or asked_again(nvim))
    return nvim


ASK_AGAIN = """
for _, each in pairs(require("mercury.client").get(0).requests) do
  if each.type == "pending" and each.method == "textDocument/copilotInlineEdit" then return end
end
local next_edits, bufnr = require("mercury.next_edits"), vim.api.nvim_get_current_buf()
next_edits.detached(bufnr, false)
next_edits.changed(bufnr)
"""
"""Makes the plugin forget that it has asked here, once it has its answer."""


def asked_again(nvim: Neovim) -> bool:
    """Ask once more if there was nothing to show: on a busy machine the text may not have been parsed yet."""
    nvim.rest()
    if not drawn(nvim):
        nvim.lua(ASK_AGAIN)
    return False


def marks(nvim: Neovim) -> list[list[int]]:
    """Where text is drawn as removed: row, first and last byte."""
    return nvim.lua(
        'local ns, found = vim.api.nvim_create_namespace("mercury.next_edits"), {} '
        "for _, m in ipairs(vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true })) do "
        'if m[4].hl_group == "MercuryRemoved" then table.insert(found, { m[2], m[3], m[4].end_col }) end end '
        "return found"
    )


def cursor(nvim: Neovim) -> list[int]:
    return nvim.lua("return vim.api.nvim_win_get_cursor(0)")


def test_the_next_edit_is_drawn_in_place_and_one_key_goes_there_and_makes_it(desk: Desk) -> None:
    nvim = renamed(desk)
    assert "total" in drawn(nvim) and "2 of 3 · <Tab>" in drawn(nvim)
    assert marks(nvim) == [[2, len("    𝒳 = ".encode()), len("    𝒳 = count".encode())]]
    assert nvim.lines()[2] == "    𝒳 = count"
    nvim.keys("<M-n>")
    until(lambda: cursor(nvim)[0] == 3)
    assert nvim.lines()[2] == "    𝒳 = count", "the first key only goes there"
    nvim.keys("<M-n>")
    until(lambda: nvim.lines()[2] == "    𝒳 = total")
    until(lambda: "total" in drawn(nvim))  # the next one, at once
    nvim.keys("<M-n>")
    until(lambda: cursor(nvim)[0] == 4)
    nvim.keys("<M-n>")
    until(lambda: nvim.lines()[1:] == ["def f(total):", "    𝒳 = total", "    return total"])
    until(lambda: drawn(nvim) == "")


def test_keys_pressed_faster_than_the_server_answers_type_nothing(desk: Desk) -> None:
    nvim = desk.start_attached(TEXT, cmd=COMMAND)
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 2, 6 })")
    nvim.keys("ciwtotal")
    until(lambda: "2 of 3" in drawn(nvim) or asked_again(nvim))
    nvim.keys("<Tab><Tab><Tab><Tab>")
    until(lambda: nvim.lines()[1:] == ["def f(total):", "    𝒳 = total", "    return total"])


def undone(nvim: Neovim) -> list[list[str]]:
    """The lines after each `u`, until there is nothing left to undo."""
    nvim.keys("<Esc>")
    found = [nvim.lines()[1:]]
    while True:
        nvim.keys("u")
        if (lines := nvim.lines()[1:]) == found[-1]:
            return found
        found.append(lines)


def test_what_is_typed_after_going_there_while_inserting_can_be_undone(desk: Desk) -> None:
    nvim = desk.start_attached(TEXT, cmd=COMMAND)
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 2, 6 })")
    nvim.keys("ciwtotal")
    until(lambda: "2 of 3" in drawn(nvim) or asked_again(nvim))
    nvim.keys("<Tab>")
    until(lambda: cursor(nvim)[0] == 3)
    nvim.keys("my_")
    begin, renamed_once, last = TEXT.splitlines()[1:], "def f(total):", "    return count"
    typed, untyped = [renamed_once, "    𝒳 = my_count", last], [renamed_once, "    𝒳 = count", last]
    assert undone(nvim) == [typed, untyped, begin]


def test_one_tab_goes_to_the_edit_and_makes_it_as_in_vs_code(desk: Desk) -> None:
    nvim = renamed(desk)
    nvim.keys("<Tab>")
    until(lambda: cursor(nvim)[0] == 3)
    nvim.keys("<Tab>")
    until(lambda: nvim.lines()[2] == "    𝒳 = total")
    until(lambda: "3 of 3 · <Tab>" in drawn(nvim))
    nvim.keys("A")
    until(lambda: nvim.lua("return vim.fn.mode()") == "i")
    nvim.keys("<Tab><Tab>")
    until(lambda: nvim.lines()[1:] == ["def f(total):", "    𝒳 = total", "    return total"])
    until(lambda: drawn(nvim) == "")
    nvim.keys("<Tab>")
    until(lambda: nvim.lines()[3] == "    return total    ")


def test_tab_inserts_ghost_text_before_it_goes_to_an_edit(desk: Desk) -> None:
    nvim = renamed(desk)
    nvim.lua("require('mercury.ghost').accept = function() vim.g.accepted = 1 return true end")
    nvim.keys("A<Tab>")
    until(lambda: nvim.lua("return vim.g.accepted") == 1)
    assert cursor(nvim)[0] == 2


def test_a_dismissed_edit_stays_away(desk: Desk) -> None:
    nvim = renamed(desk)
    nvim.keys(":Mercury dismiss<CR>")
    until(lambda: drawn(nvim) == "")
    nvim.keys("jjkk")
    nvim.read_all_replies()
    assert "2 of 3" not in drawn(nvim)
    assert nvim.lines()[2] == "    𝒳 = count"


@pytest.mark.parametrize(("row", "old", "new"), [(2, "count", "c"), (5, "total", "t")])
def test_a_name_is_finished_when_the_user_leaves_insert_mode(desk: Desk, row: int, old: str, new: str) -> None:
    nvim = desk.start_attached(TEXT + "total = 1\nprint(total)\n", cmd=COMMAND)
    nvim.keys(f":call search('{old}')<CR>ciw{new}<Esc>")
    until(lambda: nvim.lines()[row - 1].count(old) == 0)
    until(lambda: " of " in drawn(nvim) or asked_again(nvim))


def test_another_change_hides_it_and_nothing_stale_is_made(desk: Desk) -> None:
    nvim = renamed(desk)
    nvim.keys("gg0x")
    nvim.lua("return require('mercury.next_edits').go_on()")
    assert nvim.lines()[2] == "    𝒳 = count"


def test_all_that_is_left_of_a_renaming_is_made_by_one_command_and_undone_at_once(desk: Desk) -> None:
    nvim = renamed(desk)
    nvim.keys(":Mercury next_edit_all<CR>")
    until(lambda: nvim.lines()[1:] == ["def f(total):", "    𝒳 = total", "    return total"])
    nvim.keys("u")
    until(lambda: nvim.lines()[2:] == ["    𝒳 = count", "    return count"])


def test_switched_off_nothing_is_drawn(desk: Desk) -> None:
    nvim = desk.start_attached(TEXT, cmd=COMMAND, options="next_edits = false")
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 2, 6 })")
    nvim.keys("ciwtotal<Esc>")
    until(lambda: nvim.lines()[1] == "def f(total):")
    nvim.read_all_replies()
    assert drawn(nvim) == ""


def test_the_key_for_a_word_makes_the_edit_only_where_the_cursor_is_in_it(desk: Desk) -> None:
    nvim = renamed(desk)
    nvim.keys("<M-w>")
    nvim.read_all_replies()
    assert nvim.lines()[2] == "    𝒳 = count"
    nvim.keys("<M-n><M-w>")
    until(lambda: nvim.lines()[2] == "    𝒳 = total")
    nvim.keys("u")
    until(lambda: nvim.lines()[2] == "    𝒳 = count")


def project(desk: Desk) -> Neovim:
    """A change made twice; the next place is in another open document."""
    (desk.folder / ".git").mkdir()
    nvim = desk.start_attached("h(y.strict)\n\nk(z.strict)\n", name="user.py", cmd=COMMAND)
    nvim.open(desk.folder / "tools.py", script(confidence=0.1) + "f(x.strict)\ng(x.strict)\n")
    until(nvim.attached)
    for line in (2, 3):
        nvim.lua(f"vim.api.nvim_win_set_cursor(0, {{ {line}, 4 }})")
        nvim.keys("ciwloose<Esc>")
    until(lambda: "user.py" in drawn(nvim))
    return nvim


def name(nvim: Neovim) -> str:
    return nvim.lua("return vim.fn.expand('%:t')")


def test_an_edit_in_another_document_is_announced_and_the_key_goes_there(desk: Desk) -> None:
    nvim = project(desk)
    assert "→ user.py, line 1" in drawn(nvim) and "<Tab>" in drawn(nvim)
    nvim.keys("<M-n>")
    until(lambda: name(nvim) == "user.py" and "loose" in drawn(nvim))
    assert nvim.lines()[0] == "h(y.strict)" and cursor(nvim) == [1, 4]
    nvim.keys("<M-n>")
    until(lambda: nvim.lines()[0] == "h(y.loose)")
    until(lambda: marks(nvim) == [[2, 4, 10]])  # the next one, at once
    nvim.keys("<M-n><M-n>")
    until(lambda: nvim.lines()[2] == "k(z.loose)")


def test_escape_in_normal_mode_hides_the_edit_and_otherwise_does_what_it_did(desk: Desk) -> None:
    nvim = desk.start_attached(TEXT, cmd=COMMAND, before="vim.keymap.set('n', '<Esc>', '<Cmd>let g:escaped = 1<CR>')")
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 2, 6 })")
    nvim.keys("ciwtotal<Esc>")
    until(lambda: "total" in drawn(nvim))
    nvim.keys("<Esc>")
    until(lambda: drawn(nvim) == "")
    assert nvim.lua("return vim.g.escaped") is None
    nvim.keys("<Esc>")
    until(lambda: nvim.lua("return vim.g.escaped") == 1)
