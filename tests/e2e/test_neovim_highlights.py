"""Where a second language server sees the name at the cursor, in a real Neovim over the real server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.test_neovim_next_edits import drawn
from tests.support.editor import COMMAND, script
from tests.support.neovim import Desk, Neovim, until

OTHER = """
_G.said, _G.highlights = {}, {}
local function serve(dispatchers)
  local is_closing = false
  local capabilities = { positionEncoding = "utf-8", documentHighlightProvider = true, textDocumentSync = 1 }
  return {
    request = function(method, _, callback)
      vim.schedule(function()
        if method == "initialize" then
          callback(nil, { capabilities = capabilities })
        elseif method == "textDocument/documentHighlight" then
          callback(nil, highlights)
        else
          callback(nil, vim.NIL)
        end
      end)
      return true, 1
    end,
    notify = function() return true end,
    is_closing = function() return is_closing end,
    terminate = function()
      is_closing = true
      dispatchers.on_exit(0, 0)
    end,
  }
end
vim.api.nvim_create_autocmd("LspAttach", { callback = function(args)
  local client = vim.lsp.get_client_by_id(args.data.client_id)
  if client.name ~= "mercury" then return end
  local notify = client.notify
  function client:notify(method, params)
    if method == "mercury/didChangeHighlights" then table.insert(said, params) end
    return notify(self, method, params)
  end
  vim.lsp.start({ name = "other", cmd = serve, root_dir = vim.fn.getcwd() }, { bufnr = args.buf })
end })
"""
"""A server that answers `highlights`; `said` is what the plugin has forwarded."""

TEXT = f"{script(confidence=0.1)}def f(count):\n    x = count + 1\n    '𝒳', obj.count\n    return count\n"
"""The rules take the `count` of the last line for the parameter, and not that of the one before."""


def at(row: int, first: int, is_written: bool = False) -> dict[str, Any]:
    start, end = ({"line": row, "character": column} for column in (first, first + 5))
    return {"range": {"start": start, "end": end}, "kind": 3 if is_written else 2}


SEEN = [at(1, 6, True), at(2, 8), at(3, 16)]
"""Columns count bytes."""


def served(desk: Desk, options: str = "") -> Neovim:
    """Both servers run, and the cursor has come to rest on the parameter."""
    nvim = desk.start_attached(TEXT, cmd=COMMAND, options=options, before=OTHER)
    until(lambda: nvim.lua("return (vim.lsp.get_clients({ name = 'other', bufnr = 0 })[1] or {}).initialized"))
    nvim.lua(f"highlights = vim.json.decode('{json.dumps(SEEN)}')")
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 2, 6 })")
    nvim.lua("vim.api.nvim_exec_autocmds('CursorMoved', {})")
    return nvim


def said(nvim: Neovim) -> list[dict[str, Any]]:
    return nvim.lua("return said") or []


def test_where_the_cursor_rests_on_a_name_its_places_are_forwarded_in_utf_16(desk: Desk) -> None:
    nvim = served(desk)
    until(lambda: len(said(nvim)) == 1)
    [sent] = said(nvim)
    assert [each["range"]["start"] for each in sent["highlights"]] == [
        {"line": 1, "character": 6},
        {"line": 2, "character": 8},
        {"line": 3, "character": 14},
    ]
    assert [each["kind"] for each in sent["highlights"]] == [3, 2, 2]


def test_a_renaming_goes_on_where_the_other_server_sees_the_name(desk: Desk) -> None:
    nvim = served(desk)
    until(lambda: len(said(nvim)) == 1)
    nvim.keys("cwtotal<Esc>")
    until(lambda: "2 of 3" in drawn(nvim))
    nvim.keys(":Mercury next_edit_all<CR>")
    until(lambda: nvim.lines()[1:4] == ["def f(total):", "    x = total + 1", "    '𝒳', obj.total"])
    assert nvim.lines()[4] == "    return count"


@pytest.mark.parametrize("options", ["next_edits = false", "enabled = false"])
def test_nothing_is_asked_or_forwarded_while_switched_off(desk: Desk, options: str) -> None:
    nvim = served(desk, options)
    nvim.rest()
    assert said(nvim) == []
