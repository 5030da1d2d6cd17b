"""The Neovim plugin, driven through a real headless Neovim by the keys a user would press."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from tests.support.neovim import MODEL_WAIT_S, PLUGIN, Desk, rule, shows, span, until

ADD = "a, b):\n    return a + b"

LOADING = "mercury: loading the model"


def test_ghost_text_is_the_servers_insert_text(desk: Desk) -> None:
    desk.script([rule("def add(", ADD)])
    nvim = desk.start_attached()
    nvim.keys("idef add(")
    shows(nvim, ADD)


def test_request_carries_uri_position_and_automatic_trigger(desk: Desk) -> None:
    desk.script([rule("def add(", ADD)])
    nvim = desk.start_attached()
    nvim.keys("idef add(")
    shows(nvim, ADD)
    assert desk.asked()[-1]["params"] == {
        "textDocument": {"uri": (desk.folder / "a.py").as_uri()},
        "position": {"line": 0, "character": 8},
        "context": {"triggerKind": 2},
    }


def test_accept_leaves_exactly_the_suggested_text(desk: Desk) -> None:
    desk.script([rule("def add(", ADD)])
    nvim = desk.start_attached("# above\n\n# below\n")
    nvim.keys("jidef add(")
    shows(nvim, ADD)
    nvim.keys("<Tab>")
    until(lambda: nvim.lines() == ["# above", "def add(a, b):", "    return a + b", "# below"])
    assert nvim.ghost() == ""
    nvim.keys("!")
    until(lambda: nvim.lines()[2] == "    return a + b!")


def test_accept_word_takes_one_word_and_shows_the_rest(desk: Desk) -> None:
    desk.script([rule("def add(", ADD)])
    nvim = desk.start_attached()
    nvim.keys("idef add(")
    shows(nvim, ADD)
    asked = len(desk.asked())
    for line, rest in [("a", ADD[1:]), ("a,", ADD[2:]), ("a, b", ADD[4:])]:
        nvim.keys("<M-w>")
        until(lambda line=line: nvim.lines() == [f"def add({line}"])
        shows(nvim, rest)
    assert len(desk.asked()) == asked


def test_dismissed_text_stays_away_until_the_text_changes(desk: Desk) -> None:
    desk.script([rule("def add(", ADD)])
    nvim = desk.start_attached()
    nvim.keys("idef add(")
    shows(nvim, ADD)
    asked = len(desk.asked())
    nvim.keys("<C-]>")
    shows(nvim, "")
    nvim.keys("x")
    until(lambda: len(desk.asked()) > asked)
    assert desk.asked()[asked]["params"]["position"] == {"line": 0, "character": 9}
    nvim.keys("<BS>")
    shows(nvim, ADD)


def test_typing_the_suggestion_shrinks_it_without_asking(desk: Desk) -> None:
    desk.script([rule("def add(", ADD)])
    nvim = desk.start_attached()
    nvim.keys("idef add(")
    shows(nvim, ADD)
    asked = len(desk.asked())
    nvim.keys("a")
    assert nvim.ghost() == ADD[1:]
    nvim.keys(", b")
    assert nvim.ghost() == ADD[4:]
    nvim.keys("<BS>")
    assert nvim.ghost() == ADD[3:]
    nvim.keys("<Tab>")
    until(lambda: nvim.lines() == ["def add(a, b):", "    return a + b"])
    until(lambda: len(desk.asked()) > asked)
    assert desk.asked()[asked]["params"]["position"] == {"line": 1, "character": 16}


def test_typing_something_else_hides_the_suggestion(desk: Desk) -> None:
    desk.script([rule("def add(", ADD)])
    nvim = desk.start_attached()
    nvim.keys("idef add(")
    shows(nvim, ADD)
    nvim.keys("z")
    assert nvim.ghost() == ""


@pytest.mark.parametrize("leave", ["<Esc>", "<Left>", "<C-o>:enew<CR>"])
def test_leaving_the_place_hides_the_suggestion(desk: Desk, leave: str) -> None:
    desk.script([rule("def add(", ADD)])
    nvim = desk.start_attached(before="vim.o.hidden = true")
    nvim.keys("idef add(")
    shows(nvim, ADD)
    nvim.keys(leave)
    shows(nvim, "")
    if leave == "<C-o>:enew<CR>":
        nvim.lua("vim.cmd.buffer(1)")
        shows(nvim, "")


def test_a_reply_to_an_older_question_is_never_shown(desk: Desk) -> None:
    gate = desk.folder / "gate"
    desk.script([rule("x", "old", gate=str(gate), ignore_cancel=True), rule("xy", "new")])
    nvim = desk.start_attached()
    nvim.keys("ix")
    (older,) = until(desk.asked)
    nvim.lua(
        "local seen = {}; _G.seen = seen\n"
        "local ghost = vim.api.nvim_create_namespace('mercury')\n"
        "local set = vim.api.nvim_buf_set_extmark\n"
        "vim.api.nvim_buf_set_extmark = function(b, ns, r, c, o)\n"
        "  if ns == ghost and o.virt_text then table.insert(seen, o.virt_text[1][1]) end\n"
        "  return set(b, ns, r, c, o)\n"
        "end"
    )
    nvim.keys("y")
    shows(nvim, "new")
    gate.touch()
    until(lambda: older["id"] in desk.answered())
    nvim.read_all_replies()
    assert nvim.ghost() == "new"
    assert set(nvim.lua("return seen")) == {"new"}


def test_a_servers_error_is_told_once(desk: Desk) -> None:
    desk.script([{"before": "", "error": -32603}])
    nvim = desk.start_attached()
    nvim.keys("ix")
    messages = "return vim.api.nvim_exec2('messages', { output = true }).output"
    until(lambda: nvim.lua(messages) == "mercury: scripted")
    nvim.keys("y")
    until(lambda: len(desk.asked()) == 2)
    until(desk.answered_last)
    nvim.read_all_replies()
    assert nvim.lua(messages) == "mercury: scripted"


def test_positions_count_utf16_units(desk: Desk) -> None:
    text = 's = "😀ä'
    desk.script([{"before": text, "result": [{"insertText": '😀ä🎉"', "range": span(0, 5, 8)}]}])
    nvim = desk.start_attached()
    nvim.keys("i" + text)
    shows(nvim, '🎉"')
    assert desk.asked()[-1]["params"]["position"] == {"line": 0, "character": 8}
    nvim.keys("<Tab>!")
    until(lambda: nvim.lines() == ['s = "😀ä🎉"!'])


def test_the_items_range_is_replaced_and_only_new_text_is_shown(desk: Desk) -> None:
    desk.script([{"before": "print(", "result": [{"insertText": "print(a, (b))", "range": span(0, 0, 7)}]}])
    nvim = desk.start_attached(")\n")
    nvim.keys("iprint(")
    shows(nvim, "a, (b)")
    nvim.keys("<Tab>!")
    until(lambda: nvim.lines() == ["print(a, (b))!"])


def test_one_accept_is_one_undo_step(desk: Desk) -> None:
    desk.script([rule("def add(", ADD)])
    nvim = desk.start_attached()
    nvim.keys("idef add(")
    shows(nvim, ADD)
    nvim.keys("<Tab>")
    until(lambda: len(nvim.lines()) == 2)
    nvim.keys("  # sum<Esc>")
    until(lambda: nvim.lines()[1] == "    return a + b  # sum")
    nvim.keys("u")
    until(lambda: nvim.lines() == ["def add(a, b):", "    return a + b"])
    nvim.keys("u")
    until(lambda: nvim.lines() == ["def add("])
    nvim.keys("u")
    until(lambda: nvim.lines() == [""])


def test_dot_repeats_what_was_typed_and_what_was_accepted(desk: Desk) -> None:
    desk.script([rule("def add(", ADD)])
    nvim = desk.start_attached("\n\n")
    nvim.keys("idef add(")
    shows(nvim, ADD)
    nvim.keys("<Tab>  # sum<Esc>")
    until(lambda: nvim.lines() == ["def add(a, b):", "    return a + b  # sum", ""])
    nvim.keys("G.")
    until(lambda: nvim.lines() == ["def add(a, b):", "    return a + b  # sum"] * 2)


def test_accepted_text_is_neither_indented_nor_abbreviated_nor_broken(desk: Desk) -> None:
    text = "a, b):\n    return teh * (\n        a\n    )"
    desk.script([rule("    def add(", text)])
    nvim = desk.start_attached("\n\n")
    nvim.keys("i    def add(")
    shows(nvim, text)
    nvim.lua("vim.cmd('set autoindent textwidth=10 formatoptions+=t | iabbrev teh the')")
    nvim.keys("<Tab><Esc>")
    accepted = ("    def add(" + text).split("\n")
    until(lambda: nvim.lines() == [*accepted, ""])


def test_accept_runs_the_items_command_after_the_text_is_in(desk: Desk) -> None:
    command = {"title": "accepted", "command": "scripted.accepted", "arguments": ["id-1"]}
    desk.script([{"before": "x", "result": [{"insertText": "yz", "command": command}]}])
    nvim = desk.start_attached()
    nvim.keys("ix")
    shows(nvim, "yz")
    nvim.keys("<Tab>")
    (ran,) = until(lambda: desk.received("workspace/executeCommand"))
    assert ran["params"] == {"command": "scripted.accepted", "arguments": ["id-1"]}
    assert nvim.lines() == ["xyz"]


def test_cycling_asks_for_more_and_goes_round(desk: Desk) -> None:
    more = [{"insertText": text} for text in ("one", "two", "three")]
    desk.script([rule("x", "one", trigger=2), {"before": "x", "result": {"items": more}, "trigger": 1}])
    nvim = desk.start_attached()
    nvim.keys("ix")
    shows(nvim, "one")
    for key, text in [("<M-]>", "two"), ("<M-]>", "three"), ("<M-]>", "one"), ("<M-[>", "three")]:
        nvim.keys(key)
        shows(nvim, text)
    assert [message["params"]["context"]["triggerKind"] for message in desk.asked()] == [2, 1]
    nvim.keys("<Tab>")
    until(lambda: nvim.lines() == ["xthree"])


def test_who_asks_by_key_is_told_that_there_is_nothing(desk: Desk) -> None:
    nvim = desk.start_attached(name="a.txt")
    desk.say("didChangeStatus", {"kind": "Normal", "busy": False, "message": ""})
    nvim.keys("ix")
    until(lambda: desk.asked() and desk.answered_last())
    nvim.read_all_replies()
    assert nvim.ghost() == ""
    nvim.keys("<M-]>")
    shows(nvim, "mercury: no suggestion here")
    nvim.keys("<Tab>y")
    until(lambda: nvim.lines() == ["x\ty"])
    shows(nvim, "")


def test_null_leaves_what_is_shown_and_an_empty_list_clears_it(desk: Desk) -> None:
    desk.script([rule("x", "one", trigger=2), {"before": "x", "result": None, "trigger": 1}])
    nvim = desk.start_attached()
    nvim.keys("ix")
    shows(nvim, "one")
    nvim.keys("<M-]>")
    until(lambda: len(desk.asked()) == 2)
    until(desk.answered_last)
    nvim.read_all_replies()
    assert nvim.ghost() == "one"
    desk.script([{"before": "x", "result": {"items": []}}])
    nvim.keys("<M-]>")
    shows(nvim, "mercury: no suggestion here")


def test_tab_is_a_tab_when_nothing_is_shown(desk: Desk) -> None:
    nvim = desk.start_attached(name="a.txt")
    nvim.keys("ix<Tab>y")
    until(lambda: nvim.lines() == ["x\ty"])


@pytest.mark.parametrize(
    "mapping",
    [
        "vim.keymap.set('i', '<Tab>', '-old-')",
        "vim.keymap.set('i', '<Tab>', function() return '-old-' end, { expr = true })",
        "vim.keymap.set('i', '<Tab>', function() vim.api.nvim_put({ '-old-' }, 'c', false, true) end)",
        "vim.cmd([[inoremap <expr> <Tab> '-' .. 'old-']])",
    ],
)
def test_tab_falls_through_to_the_mapping_it_had(desk: Desk, mapping: str) -> None:
    desk.script([rule("x", "yz")])
    nvim = desk.start_attached(before=mapping)
    nvim.keys("iw<Tab>x")
    shows(nvim, "yz")
    nvim.keys("<Tab>")
    until(lambda: nvim.lines() == ["w-old-xyz"])


def test_a_filetype_switched_off_gets_no_server(desk: Desk) -> None:
    nvim = desk.start(name="COMMIT_EDITMSG")
    assert nvim.lua("return vim.bo.filetype") == "gitcommit"
    nvim.open(desk.folder / "b.py")
    until(nvim.attached)
    assert nvim.lua("return #vim.lsp.get_clients({ bufnr = 1 })") == 0


def test_toggle_hides_and_silences_until_toggled_again(desk: Desk) -> None:
    desk.script([rule("x", "yz")])
    nvim = desk.start_attached()
    nvim.keys("ix")
    shows(nvim, "yz")
    asked = len(desk.asked())
    nvim.keys("<Cmd>Mercury toggle<CR>")
    shows(nvim, "")
    nvim.keys("x<Esc>a")
    nvim.keys("x")
    assert nvim.lua("return require('mercury').status()").startswith("mercury: off, server attached")
    nvim.keys("<Cmd>Mercury toggle<CR>x")
    shows(nvim, "yz")
    assert len(desk.asked()) == asked + 1


def test_settings_reach_the_server_under_its_name(desk: Desk) -> None:
    nvim = desk.start_attached(options="settings = { effort = 'high' }")
    (told,) = until(lambda: desk.received("workspace/didChangeConfiguration"))
    assert told["params"] == {"settings": {"mercury": {"effort": "high"}}}
    asked = "return vim.lsp.handlers['workspace/configuration'](nil, { items = { { section = 'mercury' } } }, %s)"
    context = "{ client_id = require('mercury.client').get(0).id }"
    assert nvim.lua(asked % context) == [{"effort": "high"}]


def test_the_help_has_all_its_tags(desk: Desk) -> None:
    copy = shutil.copytree(PLUGIN / "doc", desk.folder / "doc")
    (copy / "tags").unlink()
    desk.start_attached().lua(f"vim.cmd.helptags({json.dumps(str(copy))})")
    assert (copy / "tags").read_text() == (PLUGIN / "doc" / "tags").read_text(), "run :helptags editors/nvim/doc"


ON_SCREEN = """
vim.cmd.redraw()
return vim.tbl_map(function(window)
  local row, col = unpack(vim.api.nvim_win_get_position(window))
  local cells = {}
  for line = 1, 2 do
    for cell = 1, 20 do table.insert(cells, vim.fn.screenstring(row + line, col + cell)) end
  end
  return table.concat(cells)
end, vim.api.nvim_tabpage_list_wins(0))
"""


def test_only_the_cursors_window_shows_the_text(desk: Desk) -> None:
    desk.script([rule("x", "one\ntwo")])
    nvim = desk.start_attached()
    nvim.keys(":vsplit<CR>ix")
    shows(nvim, "one\ntwo")
    drawn = [("xone" in window, "two" in window) for window in nvim.lua(ON_SCREEN)]
    assert drawn == [(True, True), (False, False)]
    nvim.keys("<Cmd>wincmd w<CR>")
    shows(nvim, "")
    nvim.keys("<Esc>Ax<BS>")
    shows(nvim, "one\ntwo")
    drawn = [("xone" in window, "two" in window) for window in nvim.lua(ON_SCREEN)]
    assert drawn == [(False, False), (True, True)]


@pytest.mark.slow
def test_the_real_server_shows_text_that_accept_inserts_unchanged(desk: Desk) -> None:
    nvim = desk.start("def add(a, b):\n    return a + b\n\n\n\n", cmd=[sys.executable, "-m", "mercury_lsp"])
    until(nvim.attached, MODEL_WAIT_S)
    nvim.keys("Gidef subtract(a, b):<CR><M-]>")  # asked for by key the silence gate does not apply
    until(lambda: nvim.ghost() not in ("", LOADING), MODEL_WAIT_S)
    ghost, before = nvim.ghost(), nvim.lines()
    row, column = nvim.lua("return vim.api.nvim_win_get_cursor(0)")
    nvim.keys("<Tab>")
    until(lambda: nvim.lines() != before)
    head, tail = before[row - 1][:column], before[row - 1][column:]
    expected = before[: row - 1] + (head + ghost + tail).split("\n") + before[row:]
    assert nvim.lines() == expected
