"""`:Mercury model`: the list of `mercury-lsp models` in Neovim."""

import json
import sys
from pathlib import Path

import pytest

from tests.support.neovim import Desk, Neovim, until

MODELS = [
    {"name": "bundled", "installed": True, "in_use": True, "size_bytes": 107e6, "licence": "Apache-2.0", "speed": None},
    {
        "name": "large",
        "installed": True,
        "in_use": False,
        "size_bytes": 537e6,
        "licence": None,
        "speed": {"pass_ms": 20.4, "answer_ms": 60.4, "estimated": False},
    },
    {
        "name": "larger",
        "installed": False,
        "in_use": False,
        "size_bytes": 1117e6,
        "licence": "MIT",
        "speed": {"pass_ms": 60.0, "answer_ms": 180.0, "estimated": True},
    },
]

PROGRAM = """
import json, runpy, sys
folder, models = {folder!r}, {models!r}
if "models" in sys.argv:
    words = sys.argv[sys.argv.index("models") + 1:]
    with open(folder + "/models.jsonl", "a") as log:
        log.write(json.dumps(words) + "\\n")
    if words == ["use", "broken"]:
        sys.exit("mercury-lsp: broken is not installed")
    print(models if words[0] == "list" else "")
else:
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Stands for mercury-lsp: lists models, or is the scripted server."""

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
    program = desk.folder / "program.py"
    listed = json.dumps(MODELS) if models is None else models
    program.write_text(PROGRAM.format(folder=str(desk.folder), models=listed))
    return desk.start_attached(cmd=[sys.executable, str(program), *desk.cmd[1:]], options=options)


def asked(folder: Path) -> list[list[str]]:
    log = folder / "models.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


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
    before = len(desk.received("workspace/didChangeConfiguration"))
    nvim.lua(PICK % 2)
    [[text, _]] = said(nvim)
    assert "large is the model of all your editors now" in text
    assert asked(desk.folder)[-1] == ["use", "large"]
    until(lambda: len(desk.received("workspace/didChangeConfiguration")) == before + 1)


def test_a_model_in_the_plugins_settings_goes_before_the_choice_and_that_is_said(desk: Desk) -> None:
    nvim = start(desk, options="settings = { model = 'mine' }")
    nvim.lua(PICK % 2)
    [[text, _]] = said(nvim)
    assert "your settings name another model, mine" in text


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


def test_a_command_that_lists_no_models_is_reported(desk: Desk) -> None:
    nvim = start(desk, models="not a list")
    nvim.lua(PICK % 1)
    [[text, _]] = said(nvim)
    assert "printed no list of models" in text
