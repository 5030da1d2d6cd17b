"""Errors that others report, in a real Neovim over the real server: forwarded, and gone to by key."""

from __future__ import annotations

import json
from typing import Any

from tests.support.editor import COMMAND, script
from tests.support.neovim import Desk, Neovim, until

HEARD = """
_G.said = {}
local linter = vim.api.nvim_create_namespace("linter")
function _G.report(list) vim.diagnostic.set(linter, 0, list) end
vim.api.nvim_create_autocmd("LspAttach", { callback = function(args)
  local client = vim.lsp.get_client_by_id(args.data.client_id)
  local notify = client.notify
  function client:notify(method, params)
    if method == "mercury/didChangeDiagnostics" then table.insert(said, params) end
    return notify(self, method, params)
  end
end })
"""
"""`report` is what a linter does; `said` is what the plugin has forwarded."""

ERROR, WARNING, HINT = 1, 2, 4

BODY = script(confidence=0.1) + "\n" + "".join(f"a{n} = {n}\n" for n in range(1, 60))


def report(nvim: Neovim, *found: dict[str, Any]) -> None:
    nvim.lua(f"report(vim.json.decode('{json.dumps([{'message': 'hunter2'} | each for each in found])}'))")


def at(row: int, severity: int = ERROR, col: int = 0) -> dict[str, Any]:
    return {"lnum": row, "col": col, "end_col": col + 2, "severity": severity}


def said(nvim: Neovim) -> list[dict[str, Any]]:
    return nvim.lua("return said") or []


def lines(nvim: Neovim) -> list[list[int]]:
    """The lines of each forwarded report."""
    return [[each["range"]["start"]["line"] for each in sent["diagnostics"]] for sent in said(nvim)]


def checked(desk: Desk, options: str = "", text: str | None = None) -> Neovim:
    """A file without errors, in which nothing is a likely place."""
    nvim = desk.start_attached(text or BODY, cmd=COMMAND, options=options, before=HEARD)
    report(nvim)
    return nvim


def test_the_key_goes_to_an_error_that_appeared_after_the_last_change(desk: Desk) -> None:
    nvim = checked(desk)
    until(lambda: lines(nvim) == [[]])
    nvim.lua("vim.api.nvim_win_set_cursor(0, { 2, 0 })")
    nvim.keys("Cx = 1<Esc>")
    until(lambda: nvim.lines()[1] == "x = 1")
    report(nvim, at(41))
    until(lambda: lines(nvim)[-1] == [41])
    nvim.keys("<M-n>")
    until(lambda: nvim.lua("return vim.api.nvim_win_get_cursor(0)") == [42, 0])


def test_errors_are_forwarded_without_messages_in_utf_16(desk: Desk) -> None:
    nvim = checked(desk, text="x = '𝒳' + y\nz = 1\n")
    until(lambda: lines(nvim) == [[]])
    report(nvim, at(1, WARNING), at(1, HINT), at(0, ERROR, 13), at(9, WARNING))
    until(lambda: len(said(nvim)) == 2)
    [_, sent] = said(nvim)
    found = [(each["severity"], each["range"]["start"], each["range"]["end"]) for each in sent["diagnostics"]]
    assert found == [(ERROR, {"line": 0, "character": 11}, {"line": 0, "character": 12})]
    assert "hunter2" not in json.dumps(sent)


def test_nothing_is_forwarded_while_next_edits_are_off(desk: Desk) -> None:
    nvim = checked(desk, options="next_edits = false")
    report(nvim, at(41))
    nvim.rest()
    assert said(nvim) == []
