"""What the plugin tells of itself, and where it is switched off."""

import pytest

from tests.support.neovim import Desk, Neovim, rule, shows, until

LINE = "return require('mercury').statusline()"


def says(nvim: Neovim, word: str) -> None:
    until(lambda: nvim.lua(LINE) == "mercury " + word)


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"kind": "Normal", "busy": True, "message": "loading the model"}, "loading"),
        ({"kind": "Normal", "busy": False, "message": ""}, "ready"),
        ({"kind": "Normal", "busy": True, "message": ""}, "busy"),
        ({"kind": "Inactive", "busy": False, "message": "switched off by mercury.enabled"}, "off"),
        ({"kind": "Error", "busy": False, "message": "no model"}, "error"),
    ],
)
def test_the_statusline_says_what_the_server_said_last(desk: Desk, status: dict, word: str) -> None:
    nvim = desk.start_attached()
    says(nvim, "loading")
    desk.say("didChangeStatus", status)
    says(nvim, word)


def test_the_statusline_is_off_where_suggestions_are(desk: Desk) -> None:
    nvim = desk.start_attached()
    desk.say("didChangeStatus", {"kind": "Normal", "busy": False, "message": ""})
    says(nvim, "ready")
    for command in ("disable", "disable buffer", "disable filetype"):
        nvim.lua(f"vim.cmd.Mercury({{ args = vim.split('{command}', ' ') }})")
        says(nvim, "off")
        nvim.lua(f"vim.cmd.Mercury({{ args = vim.split('{command.replace('disable', 'enable')}', ' ') }})")
        says(nvim, "ready")
    nvim.lua("vim.cmd.enew()")
    says(nvim, "off")


def test_the_statusline_asks_nobody(desk: Desk) -> None:
    nvim = desk.start_attached()
    says(nvim, "loading")
    until(lambda: desk.received("textDocument/didOpen"))  # the last of what is said at the start
    before = desk.log.read_text()
    for _ in range(5):
        nvim.lua(LINE)
    assert desk.log.read_text() == before


def test_a_buffer_is_switched_off_and_on(desk: Desk) -> None:
    desk.script([rule("", "text")])
    nvim = desk.start_attached()
    nvim.keys("ix")
    shows(nvim, "text")
    nvim.keys("<Cmd>Mercury disable buffer<CR>")
    shows(nvim, "")
    nvim.keys("<Esc>")
    nvim.open(desk.folder / "b.py")
    until(nvim.attached)
    nvim.keys("iy")
    shows(nvim, "text")
    nvim.keys("<Esc>:buffer 1<CR>:Mercury toggle buffer<CR>az")
    shows(nvim, "text")


def health(nvim: Neovim) -> str:
    nvim.lua("vim.cmd.checkhealth('mercury')")
    return until(lambda: "\n".join(nvim.lines()))


def test_health_names_server_model_backend_and_neovim(desk: Desk) -> None:
    told = health(desk.start_attached())
    for fact in ("mercury-lsp 1.2.3", "the model scripted runs on cpu by paper", "Neovim 0."):
        assert fact in told
    assert "WARNING" not in told


def test_a_neovim_that_is_too_old_is_named(desk: Desk) -> None:
    old = "vim.fn.has = function(what) return what == 'nvim-0.11' and 0 or vim.call('has', what) end"
    nvim = desk.start(before=old)
    ok, message = nvim.lua("return { pcall(require('mercury').setup) }")
    assert not ok and message.startswith("mercury: Neovim 0.11 or newer is needed; this is ")
    told = health(nvim)
    assert "0.11 or newer is needed" in told
    assert told.count("ERROR") == 1 and "WARNING" not in told


MESSAGES = "return vim.api.nvim_exec2('messages', { output = true }).output"


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("a.py", "no-such-server cannot be run; install mercury-lsp, or set the option `cmd` to its path"),
        ("COMMIT_EDITMSG", 'the filetype "gitcommit" is switched off'),
        ("notes", "the buffer has no filetype"),
    ],
)
def test_the_status_says_why_there_is_no_server(desk: Desk, file: str, reason: str) -> None:
    nvim = desk.start(cmd=["no-such-server"], name=file)
    nvim.keys(":Mercury<CR>")
    until(lambda: nvim.lua(MESSAGES).endswith(f"no server here: {reason}"))


def test_health_names_who_took_a_key(desk: Desk) -> None:
    nvim = desk.start_attached()
    nvim.lua("vim.keymap.set('i', '<Tab>', '<C-n>', { desc = 'next entry' })")
    told = health(nvim)
    assert "<Tab> is not the key for accept: it is mapped to next entry" in told
    assert "call require('mercury').accept() from that mapping" in told


@pytest.mark.parametrize(
    ("by", "name"), [("cmp.utils.keymap.set_map", "nvim-cmp"), ("blink.cmp", "blink.cmp")], ids=lambda each: each
)
def test_health_does_not_warn_of_a_completion_plugin_that_hands_the_key_on(desk: Desk, by: str, name: str) -> None:
    nvim = desk.start_attached()
    nvim.lua(f"vim.keymap.set('i', '<Tab>', function() end, {{ buffer = 0, desc = '{by}' }})")
    told = health(nvim)
    assert f"{name} has <Tab> first; it reaches accept where its mapping calls its fallback" in told
    assert "WARNING" not in told
