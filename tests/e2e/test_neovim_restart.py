"""A server that ends while the user works: the plugin starts it again, and every document goes on."""

import sys
from pathlib import Path

import pytest

from tests.support.neovim import Desk, Neovim, rule, shows, until

MESSAGES = "return vim.api.nvim_exec2('messages', { output = true }).output"
LINE = "return require('mercury').statusline()"
CLIENT = "local c = require('mercury.client').get(0) return c and c.initialized and c.id or 0"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def kill_server(nvim: Neovim, signal: int = 9) -> None:
    """Signal the children of Neovim."""
    nvim.lua(
        "for _, pid in ipairs(vim.api.nvim_get_proc_children(vim.fn.getpid())) do "
        f"vim.uv.kill(pid, {signal}) end return true"
    )


def successor(nvim: Neovim, old: int) -> int:
    """The client that took the place of an older one."""
    return until(lambda: (found := nvim.lua(CLIENT)) != old and found)


def test_a_killed_server_comes_back_and_its_documents_go_on_without_being_read_again(desk: Desk) -> None:
    desk.script([rule("", "text")])
    nvim = desk.start_attached()
    nvim.keys("ione = 1")
    shows(nvim, "text")
    nvim.keys("<Esc>")
    old = nvim.lua(CLIENT)
    kill_server(nvim)
    successor(nvim, old)
    _, opened = until(lambda: len(both := desk.received("textDocument/didOpen")) == 2 and both)
    assert opened["params"]["textDocument"]["text"] == "one = 1\n"
    nvim.keys("a2")
    shows(nvim, "text")
    assert nvim.lines() == ["one = 12"]
    assert nvim.lua(MESSAGES) == "mercury: the server ended and is started again"


def test_a_server_killed_while_the_user_inserts_suggests_again_without_a_key_but_typing(desk: Desk) -> None:
    desk.script([rule("", "text")])
    nvim = desk.start_attached()
    nvim.keys("ix")
    shows(nvim, "text")
    old = nvim.lua(CLIENT)
    kill_server(nvim)
    successor(nvim, old)
    nvim.keys("y")
    shows(nvim, "text")
    assert nvim.lines() == ["xy"] and nvim.lua("return vim.fn.mode()") == "i"


def test_a_server_that_ends_at_once_is_tried_ever_more_rarely_and_reported_once(desk: Desk) -> None:
    starts = desk.folder / "starts"
    nvim = desk.start(cmd=["sh", "-c", f"echo >> {starts}; exit 3"])
    until(lambda: starts.exists() and len(starts.read_text().splitlines()) >= 2)
    assert nvim.lua(MESSAGES) == "mercury: the server ended with exit code 3; see :checkhealth mercury"
    assert nvim.lua(LINE) == "mercury error"
    pauses = nvim.lua("return vim.tbl_map(require('mercury.process').pause_ms, { 1, 2, 3, 4, 9, 10, 50 })")
    assert pauses == [1_000, 2_000, 4_000, 8_000, 256_000, 300_000, 300_000]


def test_restart_starts_a_new_server_at_once(desk: Desk) -> None:
    desk.script([rule("", "text")])
    nvim = desk.start_attached()
    old = nvim.lua(CLIENT)
    nvim.keys(":Mercury restart<CR>")
    successor(nvim, old)
    assert len(desk.received("shutdown")) == 1
    nvim.keys("ix")
    shows(nvim, "text")
    assert "server" not in nvim.lua(MESSAGES)


def test_a_server_that_could_not_be_found_is_started_once_it_is_there(desk: Desk) -> None:
    script = desk.folder / "server"
    nvim = desk.start(cmd=[str(script)])
    nvim.keys("ix<Esc>")
    until(lambda: "cannot be run" in nvim.lua(MESSAGES))
    quoted = " ".join(f"'{part}'" for part in desk.cmd)
    script.write_text(f"#!/bin/sh\nexec {quoted}\n")
    Path(script).chmod(0o755)
    nvim.keys(":Mercury restart<CR>")
    until(nvim.attached)
