"""`:Mercury model`: the list of `mercury-lsp models` in Neovim."""

import json

import pytest

from tests.support.model_list import MODELS, asked, command
from tests.support.neovim import Desk, Neovim, until

PICK = """
_G.shown, _G.said = nil, {}
vim.ui.select = function(items, opts, choose)
  _G.shown = vim.tbl_map(opts.format_item, items)
  choose(items[%d])
end
vim.notify = function(text, level) table.insert(_G.said, { text, level }) end
vim.cmd("Mercury model")
"""


def start(desk: Desk, options: str = "", models: str | None = None) -> Neovim:
    return desk.start_attached(cmd=command(desk.folder, desk.cmd, models), options=options)


def said(nvim: Neovim) -> list:
    return until(lambda: nvim.lua("return _G.said"))


def test_the_models_are_listed_with_what_they_need(desk: Desk) -> None:
    nvim = start(desk)
    nvim.lua(PICK % 99)
    assert until(lambda: nvim.lua("return _G.shown")) == [
        "* bundled (Apache-2.0, 107 MB)",
        "  large (licence unknown, 537 MB, 60 ms a suggestion)",
        "  larger (MIT, 1117 MB, about 180 ms a suggestion, to be downloaded)",
    ]
    assert asked(desk.folder) == [["list", "--json"]]


def test_the_model_that_is_chosen_is_used_and_the_server_reads_the_choice(desk: Desk) -> None:
    nvim = start(desk)
    before = len(until(lambda: desk.received("workspace/didChangeConfiguration")))
    nvim.lua(PICK % 2)
    [[text, _]] = said(nvim)
    assert "large is the model of all your editors now" in text
    assert asked(desk.folder)[-1] == ["use", "large"]
    until(lambda: len(desk.received("workspace/didChangeConfiguration")) == before + 1)


def test_a_model_that_is_not_installed_is_added_in_a_terminal_which_can_ask(desk: Desk) -> None:
    nvim = start(desk)
    nvim.lua(PICK % 3)
    until(lambda: asked(desk.folder)[-1:] == [["add", "larger"]])
    assert nvim.lua("return vim.bo.buftype") == "terminal"


@pytest.mark.parametrize("name", ["broken"])
def test_what_the_command_could_not_do_is_shown(desk: Desk, name: str) -> None:
    nvim = start(desk, models=json.dumps([MODELS[0] | {"name": name}]))
    nvim.lua(PICK % 1)
    [[text, level]] = said(nvim)
    assert "broken is not installed" in text and level == nvim.lua("return vim.log.levels.ERROR")
