"""Where the next edit probably is, in a real Neovim over the real server: pointed to, gone to or dismissed by key."""

from __future__ import annotations

from typing import Any

from tests.support.editor import COMMAND, script
from tests.support.neovim import Desk, Neovim, until

SILENT = script(confidence=0.1)
"""No ghost text is worth showing."""

LINES = 60

FIRST = "x = 1"
"""What the user writes, by default in the second line; no edit follows from it."""

HINT = "  ↓ line 42 · <Tab>"

REST_MS = 1_000
"""By then a place would have been asked for after an answer without an edit."""

COUNTS = """
_G.asked, _G.answered = {}, {}
vim.api.nvim_create_autocmd("LspRequest", { callback = function(args)
  local request = args.data.request
  local counts = ({ pending = asked, complete = answered })[request.type] or {}
  counts[request.method] = (counts[request.method] or 0) + 1
end })
"""


def body(head: str = SILENT) -> str:
    return head + "\n" + "".join(f"a{n} = {n}\n" for n in range(1, LINES))


def command(place: str) -> list[str]:
    return [*COMMAND, "--place", place]


def written(
    desk: Desk, place: str = "41", options: str = "", text: str | None = None, line: int = 2, **more: Any
) -> Neovim:
    """A line has just been written; `place` is where the next edit probably is."""
    before = COUNTS + more.pop("before", "")
    nvim = desk.start_attached(text or body(), cmd=command(place), options=options, before=before, **more)
    nvim.lua(f"vim.api.nvim_win_set_cursor(0, {{ {line}, 0 }})")
    nvim.keys(f"C{FIRST}<Esc>")
    until(lambda: nvim.lines()[line - 1] == FIRST)
    return nvim


def pointed(desk: Desk, place: str = "41", hint: str = HINT, **more: Any) -> Neovim:
    nvim = written(desk, place, **more)
    points(nvim, hint)
    return nvim


def drawn(nvim: Neovim) -> str:
    return nvim.ghost("mercury.next_place")


def points(nvim: Neovim, hint: str = HINT) -> None:
    until(lambda: drawn(nvim) == hint)


def cursor(nvim: Neovim) -> list[int]:
    return nvim.lua("return vim.api.nvim_win_get_cursor(0)")


def asked(nvim: Neovim) -> int:
    """How often a place was asked for."""
    return nvim.lua("return asked['mercury/nextPlace'] or 0")


def edits_answered(nvim: Neovim) -> int:
    return nvim.lua("return answered['textDocument/copilotInlineEdit'] or 0")


def rest(nvim: Neovim) -> None:
    """Let the pause pass after which a place is asked for."""
    nvim.lua(f"_G.rested = false vim.defer_fn(function() _G.rested = true end, {REST_MS})")
    until(lambda: nvim.lua("return rested"))


def test_the_key_goes_to_the_place_that_the_line_of_the_cursor_points_to(desk: Desk) -> None:
    nvim = pointed(desk)
    nvim.keys("<M-n>")
    until(lambda: cursor(nvim) == [42, 0])
    assert drawn(nvim) == ""
    nvim.keys("<C-o>")
    until(lambda: cursor(nvim) == [2, 4])
    assert nvim.lines()[41] == "a40 = 40"


def test_a_place_above_the_cursor_is_gone_to_behind_its_indentation(desk: Desk) -> None:
    text = body().replace("a9 = 9\n", "if a8:\n    a9 = 9\n")
    nvim = pointed(desk, "11", "  ↑ line 12 · <Tab>", text=text, line=50)
    nvim.keys("<M-n>")
    until(lambda: cursor(nvim) == [12, 4])


def test_the_command_goes_to_the_place_too(desk: Desk) -> None:
    nvim = pointed(desk)
    nvim.keys(":Mercury next_edit<CR>")
    until(lambda: cursor(nvim) == [42, 0])
    assert nvim.ghost("mercury.notes") == ""


def test_the_key_goes_to_the_place_while_inserting(desk: Desk) -> None:
    nvim = pointed(desk)
    nvim.keys("a0")
    points(nvim)
    nvim.keys("<M-n>")
    until(lambda: cursor(nvim) == [42, 0])
    assert nvim.lua("return vim.fn.mode()") == "i"


def test_after_a_jump_no_place_is_asked_for_until_text_changes(desk: Desk) -> None:
    nvim = pointed(desk)
    before, edits = asked(nvim), edits_answered(nvim)
    nvim.keys("<M-n>")
    until(lambda: cursor(nvim) == [42, 0] and edits_answered(nvim) > edits)
    nvim.keys("<C-o>")
    rest(nvim)
    assert (asked(nvim), drawn(nvim)) == (before, "")
    nvim.keys("A0<Esc>")
    points(nvim)


def test_escape_dismisses_a_place_and_none_is_asked_for_until_text_changes(desk: Desk) -> None:
    nvim = pointed(desk, before="vim.keymap.set('n', '<Esc>', '<Cmd>let g:escaped = 1<CR>')")
    before, edits = asked(nvim), edits_answered(nvim)
    nvim.keys("<Esc>")
    until(lambda: drawn(nvim) == "")
    assert nvim.lua("return vim.g.escaped") is None
    nvim.keys("j")
    until(lambda: edits_answered(nvim) > edits)
    rest(nvim)
    assert (asked(nvim), drawn(nvim)) == (before, "")
    nvim.keys("<Esc>")
    until(lambda: nvim.lua("return vim.g.escaped") == 1)
    nvim.keys("A0<Esc>")
    points(nvim)


def test_a_place_is_shown_only_while_text_and_cursor_stay(desk: Desk) -> None:
    nvim = pointed(desk)
    for keys in ("h", "j", "A0"):
        before = asked(nvim)
        nvim.lua(f"vim.api.nvim_feedkeys('{keys}', 'tx', false)")
        nvim.lua("vim.api.nvim_exec_autocmds('CursorMoved', {})")
        assert drawn(nvim) == ""
        points(nvim)
        assert asked(nvim) == before + 1


def test_scrolling_leaves_the_place_as_it_is(desk: Desk) -> None:
    nvim = pointed(desk)
    before = asked(nvim)
    nvim.keys("<C-e>")
    until(lambda: nvim.lua("return vim.fn.line('w0')") == 2)
    nvim.lua("vim.api.nvim_exec_autocmds('WinScrolled', {})")
    rest(nvim)
    assert (asked(nvim), drawn(nvim)) == (before, HINT)


def both(desk: Desk, place: str) -> Neovim:
    """A file beside `b.py`, which is open too."""
    (desk.folder / "b.py").write_text("".join(f"  c{n} = '𝒳'\n" for n in range(20)))
    name = (desk.folder / "b.py").as_posix()
    nvim = written(desk, place)
    nvim.lua(f"vim.cmd.edit('{name}')")
    until(nvim.attached)
    nvim.lua("vim.cmd.buffer('a.py')")
    return nvim


def test_the_key_goes_to_a_place_in_another_open_file(desk: Desk) -> None:
    nvim = both(desk, "b.py:11")
    points(nvim, "  → b.py, line 12 · <Tab>")
    nvim.keys("<M-n>")
    until(lambda: nvim.lua("return vim.fn.expand('%:t')") == "b.py" and cursor(nvim) == [12, 2])
    nvim.keys("<C-o>")
    until(lambda: nvim.lua("return vim.fn.expand('%:t')") == "a.py")
    assert drawn(nvim) == ""


def test_nobody_goes_to_a_place_whose_text_has_changed(desk: Desk) -> None:
    nvim = both(desk, "b.py:11")
    points(nvim, "  → b.py, line 12 · <Tab>")
    nvim.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('b.py'), 0, 5, true, {})")
    assert nvim.lua("return require('mercury.next_edits').go_on()") is False
    assert drawn(nvim) == ""


def test_no_place_is_pointed_to_beside_ghost_text(desk: Desk) -> None:
    nvim = written(desk, text=body(script(text=" + 2")))
    points(nvim)
    nvim.keys("a")
    until(lambda: nvim.ghost() == " + 2")
    before = asked(nvim)
    rest(nvim)
    assert (asked(nvim), drawn(nvim)) == (before, "")


def test_ghost_text_that_comes_late_takes_the_place_away(desk: Desk) -> None:
    nvim = written(desk, text=body(script(text=" + 2", ms=2_000)))
    nvim.keys("a")
    points(nvim)
    until(lambda: nvim.ghost() == " + 2")
    until(lambda: drawn(nvim) == "")


def test_a_next_edit_comes_before_a_place(desk: Desk) -> None:
    nvim = pointed(desk, text=SILENT + "\ndef f(count):\n    return count\n" + "a = 1\n" * LINES)
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 3, 6 })")
    nvim.keys("ciwtotal<Esc>")
    until(lambda: "total" in nvim.ghost("mercury.next_edits"))
    assert drawn(nvim) == ""
    nvim.keys("<M-n><M-n>")
    until(lambda: nvim.lines()[3] == "    return total")
    points(nvim)


def test_switched_off_no_place_is_asked_for(desk: Desk) -> None:
    nvim = written(desk, options="next_places = false")
    until(lambda: edits_answered(nvim) > 0)
    rest(nvim)
    assert (asked(nvim), drawn(nvim)) == (0, "")


def test_without_next_edits_no_place_is_asked_for(desk: Desk) -> None:
    nvim = written(desk, options="next_edits = false")
    rest(nvim)
    assert (asked(nvim), drawn(nvim)) == (0, "")


def test_a_place_goes_when_mercury_is_switched_off(desk: Desk) -> None:
    nvim = pointed(desk)
    nvim.keys(":Mercury disable<CR>")
    until(lambda: drawn(nvim) == "")


def test_without_a_key_the_hint_names_none(desk: Desk) -> None:
    pointed(desk, options="keys = { next_edit = false, next_edit_accept = false }", hint="  ↓ line 42")
