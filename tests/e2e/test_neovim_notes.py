"""What the server says, in a real Neovim on a screen, which answers nobody while it waits for Enter."""

from __future__ import annotations

import re

import pytest

from mercury_lsp.server.requests.execute_command import NO_REASON
from tests.e2e.test_neovim_next_edits import TEXT
from tests.support.editor import COMMAND
from tests.support.neovim import Desk, Neovim, until

INFO, ERROR = 3, 1


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


def test_the_reason_for_no_next_edit_is_told_on_command(desk: Desk) -> None:
    nvim = desk.start_attached(TEXT, cmd=COMMAND, has_screen=True)
    until(lambda: nvim.lua("return require('mercury.status').word") == "ready")
    nvim.keys(":Mercury explain<CR>")
    why = f"Mercury: {NO_REASON}"
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
