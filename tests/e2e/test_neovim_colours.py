"""Ghost text looks like none of the user's, also in Neovim's own colours without true colour."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.neovim import Desk, Neovim, rule, shows, until

TYPED, GHOST = "x = ", "answer()"


def colour(nvim: Neovim, text: str) -> int | None:
    """The last colour of 256 in which the terminal was told to draw a text, once it was; None for the usual one."""
    pattern = rb"((?:\x1b\[[0-9;]*m)*)" + re.escape(text.encode())
    found = until(lambda: re.findall(pattern, bytes(nvim.drawn)))[-1]
    of_256 = re.search(rb"38;5;(\d+)", found)
    return int(of_256[1]) if of_256 is not None else None


def typed(desk: Desk, before: str) -> Neovim:
    desk.script([rule(TYPED, GHOST)])
    nvim = desk.start_attached(before=before, has_screen=True)
    nvim.keys(f"i{TYPED}")
    shows(nvim, GHOST)
    return nvim


@pytest.mark.parametrize(("background", "grey"), [("dark", 245), ("light", 241)])
def test_without_true_colour_ghost_text_is_grey_and_typed_text_is_not(desk: Desk, background: str, grey: int) -> None:
    nvim = typed(desk, f"vim.o.termguicolors = false; vim.o.background = {json.dumps(background)}")
    assert colour(nvim, GHOST) == grey
    nvim.keys("<Tab>")  # accepted, it is the user's
    until(lambda: nvim.lines() == [TYPED + GHOST])
    until(lambda: colour(nvim, GHOST) is None)


@pytest.mark.parametrize("background", ["dark", "light"])
def test_every_group_that_shows_text_differs_from_plain_text(desk: Desk, background: str) -> None:
    nvim = typed(desk, f"vim.o.termguicolors = false; vim.o.background = {json.dumps(background)}")
    for name in ("Ghost", "Unsure", "Draft", "Mask", "Note", "Replaced", "Removed", "Added"):
        found = nvim.lua(f"return vim.api.nvim_get_hl(0, {{ name = 'Mercury{name}', link = false }})")
        assert found.get("ctermfg") or found.get("ctermbg") or found.get("cterm"), name
