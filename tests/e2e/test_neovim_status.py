"""What the plugin tells of itself, and where it is switched off."""

import json

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


def test_the_statusline_is_drawn_again_once_a_buffer_is_attached(desk: Desk) -> None:
    remember = "_G.Drawn = function() _G.drawn = require('mercury').statusline() return '' end"
    before = remember + " vim.o.laststatus, vim.o.statusline = 2, '%{v:lua.Drawn()}'"
    nvim = desk.start_attached(before=before, has_screen=True)
    desk.say("didChangeStatus", {"kind": "Normal", "busy": False, "message": ""})
    until(lambda: nvim.lua("return drawn") == "mercury ready")
    nvim.keys(f":edit {desk.folder / 'b.py'}<CR>")
    until(nvim.attached)
    until(lambda: nvim.lua("return drawn") == "mercury ready")


def test_the_statusline_tells_that_the_server_has_died(desk: Desk) -> None:
    nvim = desk.start(cmd=["false"])
    says(nvim, "error")


def test_the_statusline_asks_nobody(desk: Desk) -> None:
    nvim = desk.start_attached()
    says(nvim, "loading")
    until(lambda: desk.received("textDocument/didOpen"))  # the last of what is said at the start
    before = desk.log.read_text()
    for _ in range(5):
        nvim.lua(LINE)
    assert desk.log.read_text() == before


def test_a_statusline_that_is_drawn_before_the_set_up_is_empty(desk: Desk) -> None:
    nvim = desk.start_attached(before="_G.early = require('mercury').statusline()")
    assert nvim.lua("return early") == ""


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


def test_a_filetype_is_switched_off_in_all_its_buffers_and_on_again(desk: Desk) -> None:
    desk.script([rule("", "text")])
    nvim = desk.start_attached()
    nvim.lua("vim.cmd.Mercury({ args = { 'disable', 'filetype' } })")
    nvim.open(desk.folder / "b.py")
    nvim.keys("iy<Esc>")
    assert nvim.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 0
    assert desk.asked() == []
    nvim.lua("vim.cmd.Mercury({ args = { 'enable', 'filetype' } })")
    until(nvim.attached)
    nvim.keys("az")
    shows(nvim, "text")


def test_a_buffer_of_a_filetype_switched_off_can_be_switched_on(desk: Desk) -> None:
    desk.script([rule("", "text")])
    nvim = desk.start(name="COMMIT_EDITMSG")
    nvim.lua("vim.cmd.Mercury({ args = { 'enable', 'buffer' } })")
    until(nvim.attached)
    nvim.keys("ix")
    shows(nvim, "text")


@pytest.mark.parametrize("command", ["start", "accept buffer", "enable window", "enable buffer now"])
def test_a_command_that_does_not_exist_is_refused(desk: Desk, command: str) -> None:
    nvim = desk.start_attached()
    nvim.keys(f":Mercury {command}<CR>")
    told = "return vim.api.nvim_exec2('messages', { output = true }).output"
    until(lambda: f"mercury: no such command: {command}" in nvim.lua(told))


def test_commands_and_scopes_are_completed(desk: Desk) -> None:
    nvim = desk.start_attached()
    complete = "return vim.fn.getcompletion('Mercury %s', 'cmdline')"
    assert nvim.lua(complete % "dis") == ["disable", "dismiss"]
    assert nvim.lua(complete % "disable ") == ["buffer", "filetype"]
    assert nvim.lua(complete % "accept ") == []


def health(nvim: Neovim) -> str:
    nvim.lua("vim.cmd.checkhealth('mercury')")
    return until(lambda: "\n".join(nvim.lines()))


def test_health_names_server_model_backend_and_neovim(desk: Desk) -> None:
    told = health(desk.start_attached())
    for fact in ("mercury-lsp 1.2.3", "the model scripted runs on cpu by paper", "Neovim 0."):
        assert fact in told
    assert "WARNING" not in told


def test_health_names_what_is_wrong_with_the_model(desk: Desk) -> None:
    wrong = {"kind": "Error", "message": "model.safetensors is damaged", "engine": None}
    desk.rules.with_name("status.json").write_text(json.dumps(wrong))
    told = health(desk.start_attached())
    assert "ERROR there is no model: model.safetensors is damaged" in told
    assert "run `mercury-lsp doctor`" in told


def test_health_names_the_exit_code_of_a_server_that_ended(desk: Desk) -> None:
    nvim = desk.start(cmd=["false"])
    says(nvim, "error")
    told = health(nvim)
    assert "ERROR the server ended with exit code 1" in told
    assert "run `mercury-lsp doctor`; what the server said is in" in told


def test_health_tells_where_nothing_is_suggested_and_why(desk: Desk) -> None:
    nvim = desk.start_attached()
    nvim.open(desk.folder / "COMMIT_EDITMSG")
    nvim.open(desk.folder / "notes")
    nvim.open(desk.folder / "b.py")
    until(nvim.attached)
    nvim.lua("vim.cmd.Mercury({ args = { 'disable' } })")
    told = health(nvim)
    assert 'nothing is suggested in COMMIT_EDITMSG: the filetype "gitcommit" is switched off' in told
    assert "nothing is suggested in notes: the buffer has no filetype" in told
    assert "in a.py" not in told and "in b.py" not in told
    assert "suggestions are switched off" in told


def test_health_of_a_failed_set_up_says_that_and_no_more(desk: Desk) -> None:
    told = health(desk.start(options="ghost_text = 'builtin'", before="vim.lsp.inline_completion = nil"))
    assert "mercury is not set up" in told
    assert told.count("ERROR") == 1 and "WARNING" not in told


def test_a_neovim_that_is_too_old_is_named(desk: Desk) -> None:
    old = "vim.fn.has = function(what) return what == 'nvim-0.11' and 0 or vim.call('has', what) end"
    nvim = desk.start(before=old)
    ok, message = nvim.lua("return { pcall(require('mercury').setup) }")
    assert not ok and message.startswith("mercury: Neovim 0.11 or newer is needed; this is ")
    told = health(nvim)
    assert "0.11 or newer is needed" in told
    assert told.count("ERROR") == 1 and "WARNING" not in told


MESSAGES = "return vim.api.nvim_exec2('messages', { output = true }).output"


def test_who_types_without_a_server_is_told_once(desk: Desk) -> None:
    nvim = desk.start(cmd=["no-such-server"])
    nvim.keys("ix<Esc>ax<Esc>")
    warning = "mercury: no-such-server cannot be run; see :checkhealth mercury"
    until(lambda: nvim.lua(MESSAGES) == warning)
    says(nvim, "error")


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


def test_health_names_who_took_a_key_in_one_buffer(desk: Desk) -> None:
    nvim = desk.start_attached()
    nvim.lua("vim.keymap.set('i', '<M-w>', 'x', { buffer = 0 })")
    assert "<M-w> is not the key for accept_word: it is mapped to x (buffer 1)" in health(nvim)


@pytest.mark.parametrize(
    ("by", "name"), [("cmp.utils.keymap.set_map", "nvim-cmp"), ("blink.cmp", "blink.cmp")], ids=lambda each: each
)
def test_health_does_not_warn_of_a_completion_plugin_that_hands_the_key_on(desk: Desk, by: str, name: str) -> None:
    nvim = desk.start_attached()
    nvim.lua(f"vim.keymap.set('i', '<Tab>', function() end, {{ buffer = 0, desc = '{by}' }})")
    told = health(nvim)
    assert f"{name} has <Tab> first; it reaches accept where its mapping calls its fallback" in told
    assert "WARNING" not in told


def test_health_names_the_client_that_copilots_plugins_ask_instead(desk: Desk) -> None:
    nvim = desk.start_attached()
    command = ", ".join(repr(part) for part in desk.cmd)
    nvim.lua(f"vim.lsp.start({{ name = 'copilot', cmd = {{ {command} }} }})")
    until(lambda: nvim.lua("return #vim.lsp.get_clients({ name = 'copilot' })") == 1)
    assert "plugins made for Copilot take their next edits from the client copilot" in health(nvim)


@pytest.mark.parametrize(
    ("loaded", "name"),
    [
        ("vim.g.loaded_copilot = 1", "copilot.vim"),
        ("package.loaded['copilot'] = {}", "copilot.lua"),
        ("vim.g.llama_config = vim.empty_dict()", "llama.vim"),
    ],
)
def test_health_names_other_sources_of_ghost_text(desk: Desk, loaded: str, name: str) -> None:
    assert f"{name} is loaded too" in health(desk.start_attached(before=loaded))
