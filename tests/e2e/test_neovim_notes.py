"""What the server says, in a real Neovim on a screen, which answers nobody while it waits for Enter."""

from __future__ import annotations

import re

import pytest

from mercury_lsp.server.requests.explain import NOTHING
from tests.e2e.test_neovim_next_edits import TEXT
from tests.support.editor import COMMAND, script
from tests.support.neovim import Desk, Neovim, until

INFO, ERROR = 3, 1

LONG = "Mercury makes no suggestions in a.py, " + "which has a line of more than 50,000 characters. " * 3


def noted(nvim: Neovim) -> str:
    return nvim.ghost("mercury.notes")


def messages(nvim: Neovim) -> str:
    return nvim.lua("return vim.fn.execute('messages')")


def test_without_a_next_edit_a_note_says_so_behind_the_line(desk: Desk) -> None:
    nvim = desk.start_attached(TEXT, cmd=COMMAND, has_screen=True)
    nvim.keys(":Mercury next_edit<CR>")
    until(lambda: noted(nvim) == "  Mercury: no next edit")
    assert "no next edit" not in messages(nvim)
    nvim.keys("j")
    until(lambda: noted(nvim) == "")


def test_the_key_is_answered_by_a_note_while_inserting(desk: Desk) -> None:
    nvim = desk.start_attached(TEXT, cmd=COMMAND, has_screen=True)
    nvim.keys("A<M-n>")
    until(lambda: noted(nvim) == "  Mercury: no next edit")
    assert nvim.lua("return vim.fn.mode()") == "i"
    nvim.keys("x")
    until(lambda: noted(nvim) == "")


def test_the_note_stands_where_the_server_has_just_put_the_cursor(desk: Desk) -> None:
    text = script(confidence=0.1) + "\n" + "".join(f"a{n} = {n}\n" for n in range(1, 60))
    nvim = desk.start_attached(text, cmd=[*COMMAND, "--place", "41"], has_screen=True)
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 2, 0 })")
    nvim.keys("Cx = 1<Esc>")
    until(lambda: nvim.lines()[1] == "x = 1")
    nvim.keys("<M-n>")
    until(lambda: noted(nvim) == "  Mercury: no next edit, but one is likely here")
    assert nvim.lua("return vim.api.nvim_win_get_cursor(0)") == [42, 0]
    nvim.lua("vim.api.nvim_exec_autocmds('CursorMoved', {})")
    assert noted(nvim) != ""
    nvim.keys("k")
    until(lambda: noted(nvim) == "")


@pytest.mark.parametrize(
    ("length", "wrap", "place"),
    [
        (50, "wrap", "after"),
        (70, "wrap", "below"),
        (80, "wrap", "below"),
        (100, "wrap", "after"),
        (50, "nowrap", "after"),
        (100, "nowrap", "below"),
    ],
)
def test_a_note_is_below_the_line_where_it_would_be_cut_off(desk: Desk, length: int, wrap: str, place: str) -> None:
    nvim = desk.start_attached("x" * length + "\ny\n", cmd=COMMAND, has_screen=True)
    nvim.keys(f":set {wrap}<CR>gg0<M-n>")
    until(lambda: noted(nvim).strip() == "Mercury: no next edit")
    assert noted(nvim).startswith("\n") == (place == "below")
    until(lambda: b"Mercury: no next edit" in nvim.drawn)


def test_a_note_longer_than_the_window_goes_on_in_further_lines(desk: Desk) -> None:
    nvim = desk.start_attached("x = 1\ny\n", cmd=COMMAND, has_screen=True)
    nvim.lua(
        f"require('mercury.draw').say(vim.api.nvim_create_namespace('mercury.notes'), 0, {{ {LONG!r}, 'MercuryNote' }})"
    )
    lines = noted(nvim).strip("\n").split("\n")
    assert len(lines) > 1 and max(map(len, lines)) < 80
    assert " ".join(lines).split() == LONG.split()


def test_the_reason_for_no_next_edit_is_told_on_command(desk: Desk) -> None:
    nvim = desk.start_attached(TEXT, cmd=COMMAND, has_screen=True)
    until(lambda: nvim.lua("return require('mercury.status').word") == "ready")
    nvim.keys(":Mercury explain<CR>")
    why = f"Mercury: {NOTHING}"
    until(lambda: noted(nvim).strip() == why)
    nvim.lua("vim.cmd.vsplit() vim.api.nvim_win_set_width(0, 40)")
    nvim.keys(":Mercury explain<CR>")
    until(lambda: noted(nvim).strip().split("\n") != [why] and " ".join(noted(nvim).split()) == why)


def test_the_status_says_off_here_and_why_where_nothing_is_suggested(desk: Desk) -> None:
    nvim = desk.start_attached("TOKEN=\n", name=".env", cmd=COMMAND, has_screen=True)
    why = "by its name the file holds secrets"
    nvim.keys(":Mercury status<CR>")
    until(lambda: re.search(f"mercury: off here, .*{why}", " ".join(messages(nvim).split())))
    nvim.keys(":messages clear<CR>:Mercury explain<CR>")
    until(lambda: f"Mercury: {why}" in " ".join(noted(nvim).split()))


@pytest.mark.parametrize("kind", [ERROR, INFO])
def test_what_the_server_says_by_itself_is_kept_whole_and_needs_no_enter(desk: Desk, kind: int) -> None:
    nvim = desk.start_attached("x = 1\n", has_screen=True)
    desk.say("window/showMessage", {"type": kind, "message": LONG})
    until(lambda: LONG.split() == messages(nvim).split())
    assert noted(nvim) == ""


def test_a_plugin_that_shows_notifications_gets_the_whole_text(desk: Desk) -> None:
    before = "vim.notify = function(text, level) _G.notified = { text, level } end"
    nvim = desk.start_attached("x = 1\n", has_screen=True, before=before)
    desk.say("window/showMessage", {"type": ERROR, "message": LONG})
    until(lambda: nvim.lua("return notified") == [LONG, 4])


def test_what_the_plugin_says_needs_no_enter(desk: Desk) -> None:
    missing = "/nowhere/" + "x" * 80
    nvim = desk.start("x = 1\n", cmd=[missing], has_screen=True)
    nvim.keys("i<Esc>")
    until(lambda: messages(nvim).count(missing) == 1)
    nvim.keys("i<Esc>:Mercury status<CR>")
    until(lambda: messages(nvim).count(missing) == 2)
