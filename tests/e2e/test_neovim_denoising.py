"""The plugin shows the denoising of what was asked for, and which part of a suggestion is unsure."""

import sys
from typing import Any

import pytest

from tests.support.neovim import MODEL_WAIT_S, Desk, Neovim, rule, shows, span, until


def canvas(*runs: tuple[str, str, int]) -> list[dict[str, Any]]:
    slots = [{"state": state, "text": text, "count": count} for state, text, count in runs]
    return [{"insertText": "", "range": span(0, 1, 1), "mercury": {"slots": slots}}]


FIRST = canvas(("committed", "a", 1), ("draft", " +\n", 2), ("mask", "", 3))
SECOND = canvas(("committed", "a + b", 3), ("mask", "", 1))


def denoising(desk: Desk, *parts: Any, **more: Any) -> Neovim:
    """A Neovim that was asked for a suggestion, whose answer waits for the file `gate`."""
    asked = {"before": "x", "trigger": 1, "parts": parts, "gate": str(desk.folder / "gate")}
    desk.script([asked | {"result": {"items": [{"insertText": "a + c"}]}} | more])
    nvim = desk.start_attached(options="denoising = true")
    nvim.keys("ix")
    nvim.keys("<M-]>")
    return nvim


def test_the_newest_canvas_is_drawn_until_the_answer_takes_its_place(desk: Desk) -> None:
    nvim = denoising(desk, FIRST, SECOND)
    until(lambda: nvim.painted() == [("a + b", "MercuryGhost"), ("░", "MercuryMask")])
    (desk.folder / "gate").touch()
    shows(nvim, "a + c")
    assert nvim.painted() == [("a + c", "MercuryGhost")]
    nvim.keys("<Tab>")
    until(lambda: nvim.lines() == ["xa + c"])


@pytest.mark.parametrize("keys", ["z", "<Esc>", "<C-]>", "<Left>"])
def test_going_on_hides_the_canvas_and_cancels(desk: Desk, keys: str) -> None:
    nvim = denoising(desk, SECOND)
    shows(nvim, "a + b░")
    nvim.keys(keys)
    shows(nvim, "")
    asked = next(message["id"] for message in desk.asked() if message["params"]["context"]["triggerKind"] == 1)
    until(lambda: asked in [message["params"]["id"] for message in desk.received("$/cancelRequest")])


@pytest.mark.parametrize(
    ("end", "left"),
    [
        ({"result": None}, ""),
        ({"error": -32802}, ""),
        ({"result": {"items": []}}, "mercury: no suggestion here"),
    ],
)
def test_no_canvas_outlives_its_request(desk: Desk, end: dict[str, Any], left: str) -> None:
    nvim = denoising(desk, SECOND, **end)
    shows(nvim, "a + b░")
    (desk.folder / "gate").touch()
    shows(nvim, left)


def test_nothing_is_streamed_while_typing_or_with_the_option_off(desk: Desk) -> None:
    desk.script([rule("x", "one", trigger=2), rule("x", "two", trigger=1, parts=[SECOND])])
    nvim = desk.start_attached()
    nvim.keys("ix")
    shows(nvim, "one")
    nvim.keys("<M-]>")
    shows(nvim, "two")
    assert all("partialResultToken" not in message["params"] for message in desk.asked())
    (hello,) = desk.received("initialize")
    ours = hello["params"]["capabilities"]["experimental"]["mercury"]
    assert ours == {"confidence": True, "denoising": False, "editsElsewhere": True, "offers": True, "subtle": True}


def unsure(text: str, unit: int) -> dict[str, Any]:
    return {"before": "x", "result": {"items": [{"insertText": text, "mercury": {"unsureFrom": unit}}]}}


def test_the_unsure_end_of_a_suggestion_looks_different_and_shrinks_with_it(desk: Desk) -> None:
    desk.script([unsure("😀 + b\r\n  c", 5)])
    nvim = desk.start_attached()
    nvim.keys("ix")
    until(lambda: nvim.painted() == [("😀 + ", "MercuryGhost"), ("b", "MercuryUnsure"), ("  c", "MercuryUnsure")])
    nvim.keys("😀 ")
    until(lambda: nvim.painted() == [("+ ", "MercuryGhost"), ("b", "MercuryUnsure"), ("  c", "MercuryUnsure")])
    nvim.keys("+ b")
    until(lambda: nvim.painted() == [("  c", "MercuryUnsure")])


WATCHED = """
_G.seen = {}
local set = vim.api.nvim_buf_set_extmark
vim.api.nvim_buf_set_extmark = function(buffer, namespace, row, col, opts)
  for _, chunk in ipairs(opts.virt_text or {}) do seen[chunk[2]] = true end
  return set(buffer, namespace, row, col, opts)
end
"""


@pytest.mark.slow
def test_the_real_server_shows_its_denoising(desk: Desk) -> None:
    text = "def add(a, b):\n    return a + b\n\n\n\n"
    cmd = [sys.executable, "-m", "mercury_lsp"]
    options = "denoising = true, settings = { model = 'mercury-135m-diffusion' }"
    nvim = desk.start(text, options=options, before=WATCHED, cmd=cmd)
    until(lambda: nvim.lua("return require('mercury').statusline()") == "mercury ready", MODEL_WAIT_S)
    nvim.keys("Gidef subtract(a, b):<CR>")
    nvim.keys("<M-]>")
    until(lambda: nvim.lua("return seen.MercuryMask and seen.MercuryGhost"), MODEL_WAIT_S)
    until(lambda: nvim.painted() and all(group != "MercuryMask" for _, group in nvim.painted()), MODEL_WAIT_S)
