"""The sign in the corner: loading, ready, a download, and the question about a larger model."""

import pytest

from tests.support.neovim import Desk, Neovim, until

QUESTION = "Mercury uses its small model now. Download Large 0.5B (0.5 GB, MIT)? It saves a quarter more keystrokes."

OFFER = {"name": "large", "question": QUESTION}

FLOATS = """
local found = {}
for _, window in ipairs(vim.api.nvim_list_wins()) do
  if vim.api.nvim_win_get_config(window).relative ~= "" then
    table.insert(found, table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, true), " "))
  end
end
return found
"""


def signs(nvim: Neovim) -> list[str]:
    return nvim.lua(FLOATS) or []


def status(desk: Desk, message: str) -> None:
    desk.say("didChangeStatus", {"kind": "Normal", "busy": message != "", "message": message})


def test_loading_is_said_in_a_corner_and_then_that_the_model_is_ready(desk: Desk) -> None:
    nvim = desk.start_attached()
    status(desk, "loading the model")
    until(lambda: signs(nvim) == ["mercury: loading the model"])
    status(desk, "")
    until(lambda: signs(nvim) == ["mercury: ready"])
    until(lambda: signs(nvim) == [])


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("download", "yes"), ("download yes", "yes"), ("download later", "notNow"), ("download never", "never")],
)
def test_the_question_takes_no_key_and_is_answered_by_a_command(desk: Desk, typed: str, answer: str) -> None:
    nvim = desk.start_attached()
    desk.say("mercury/offerModel", OFFER)
    until(lambda: signs(nvim))
    [shown] = signs(nvim)
    assert shown.startswith(QUESTION) and ":Mercury download" in shown
    nvim.keys("ix = 1<Esc>")
    assert nvim.lines() == ["x = 1"], "the user types on"
    assert signs(nvim) == [shown]
    nvim.keys(f":Mercury {typed}<CR>")
    [command] = until(lambda: desk.received("workspace/executeCommand"))
    assert command["params"] == {"command": "mercury.answerOffer", "arguments": [answer]}
    assert signs(nvim) == []
