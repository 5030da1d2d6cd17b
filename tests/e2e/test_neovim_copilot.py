"""Plugins made for Copilot's server in a real Neovim: the calls they make of it, over the real server."""

import json
import sys
from typing import Any

import pytest

from mercury_lsp.statistics import store
from tests.support.editor import COMMAND, script
from tests.support.neovim import Desk, Neovim, until


def text(ms: int) -> str:
    """A document whose fill takes so long."""
    return script(text="one(😀)", ms=ms) + 's = "😀"; x = \n'


CLIENT = """
said = {{}}
vim.notify = function(text) table.insert(said, text) end
vim.lsp.config("{name}", {{
  cmd = {{ {cmd} }},
  filetypes = {{ "python" }},
  init_options = {{
    editorInfo = {{ name = "Neovim", version = tostring(vim.version()) }},
    editorPluginInfo = {{ name = "{name}", version = "1" }},
  }},
  settings = {{ telemetry = {{ telemetryLevel = "all" }} }},
  handlers = {{ statusNotification = function(_, status) ready = ready or status.status == "Normal" end }},
}})
vim.lsp.enable("{name}")
function client() return vim.lsp.get_clients({{ name = "{name}" }})[1] end
"""

ASK = """
replies = replies or {}
local params = vim.lsp.util.make_position_params(0, client().offset_encoding)
params.textDocument.version = vim.lsp.util.buf_versions[vim.api.nvim_get_current_buf()]
params.context = { triggerKind = 2 }
local _, id = client():request("textDocument/copilotInlineEdit", params, function(err, result)
  table.insert(replies, { err = err, edits = result and result.edits, version = params.textDocument.version })
end)
return id
"""

APPLY = """
local edits = vim.tbl_map(function(edit)
  return { range = edit.range, newText = edit.text }
end, replies[#replies].edits)
vim.lsp.util.apply_text_edits(edits, vim.api.nvim_get_current_buf(), client().offset_encoding)
"""


def start(desk: Desk, name: str, ms: int = 0) -> Neovim:
    """Neovim with a client of the plugin's name and none of ours, in insert mode behind `x = `; a fill takes `ms`.

    The server has the settings by then: until it has, it counts nothing.
    """
    cmd = ", ".join(json.dumps(part) for part in COMMAND)
    nvim = desk.start(text(ms), "filetypes = { python = false }", CLIENT.format(name=name, cmd=cmd))
    until(lambda: nvim.lua("return ready == true"))
    nvim.keys("jA")
    return nvim


def replies(nvim: Neovim, count: int) -> list[dict[str, Any]]:
    until(lambda: nvim.lua("return #(replies or {})") >= count)
    return nvim.lua("return replies")


def outcome(desk: Desk, nvim: Neovim) -> tuple[str, int]:
    """What became of the one suggestion, once the buffer is closed."""
    nvim.keys("<Esc>:bwipeout!<CR>")
    path = desk.folder / "STATE" / "mercury-lsp" / "statistics"
    [row] = until(lambda: store.read(path, 0))
    return row.outcome, row.saved


@pytest.mark.skipif(sys.platform != "linux", reason="the state folder is another there")
def test_sidekicks_calls_cancel_apply_and_run_the_command(desk: Desk) -> None:
    nvim = start(desk, "copilot", ms=500)  # so the first request is cancelled before it is answered
    nvim.lua("client():notify('textDocument/didFocus', { textDocument = { uri = vim.uri_from_bufnr(0) } })")
    nvim.lua(f"local id = (function() {ASK} end)() client():cancel_request(id)")
    nvim.keys("y")
    nvim.lua(ASK)
    newest = until(lambda: replies(nvim, 1)[-1] if "edits" in replies(nvim, 1)[-1] else None)
    [edit] = newest["edits"]
    assert edit["textDocument"]["version"] == newest["version"] == nvim.lua("return vim.lsp.util.buf_versions[1]")
    assert edit["textDocument"]["uri"] == nvim.lua("return vim.uri_from_bufnr(0)")
    nvim.lua(APPLY)
    nvim.lua("client():exec_cmd(replies[#replies].edits[1].command, { bufnr = vim.api.nvim_get_current_buf() })")
    assert nvim.lines()[1] == 's = "😀"; x = yone(😀)'
    assert nvim.lua("return #said") == 0
    assert outcome(desk, nvim) == ("accepted", 6)


@pytest.mark.skipif(sys.platform != "linux", reason="the state folder is another there")
def test_copilot_lsps_calls_show_the_first_edit_and_tell_nothing_of_its_acceptance(desk: Desk) -> None:
    nvim = start(desk, "copilot_ls")
    nvim.lua(ASK)
    [reply] = replies(nvim, 1)
    assert "err" not in reply
    nvim.lua("client():notify('textDocument/didShowInlineEdit', { item = { command = replies[1].edits[1].command } })")
    nvim.lua(APPLY)
    assert nvim.lines()[1] == 's = "😀"; x = one(😀)'
    assert nvim.lua("return #said") == 0
    assert outcome(desk, nvim) == ("accepted", 6)
