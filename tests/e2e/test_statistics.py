"""The plugin in a real Neovim over the real server with a scripted engine: what its keys count as."""

import sys

import pytest

from mercury_lsp.statistics import OutcomeRecord, store
from tests.support.editor import COMMAND, script
from tests.support.neovim import Desk, shows, until

TEXT = script(text="one(two)") + "x = \n"


def press(desk: Desk, keys: list[str], line: str) -> None:
    """These keys at the end of `x = `, where a suggestion is shown; they leave this line, and the buffer is closed."""
    nvim = desk.start(TEXT, cmd=COMMAND)
    until(nvim.attached)
    nvim.keys("jA")
    shows(nvim, "one(two)")
    for key in keys:
        nvim.keys(key)
    until(lambda: nvim.lines()[1] == line)
    nvim.read_all_replies()
    nvim.keys("<Esc>:bwipeout!<CR>")


def counted(desk: Desk, outcome: str) -> OutcomeRecord:
    """The row with this outcome, once it is written; others are of what was shown later."""
    path = desk.folder / "STATE" / "mercury-lsp" / "statistics"

    def found() -> OutcomeRecord | None:
        rows = store.read(path, 0)
        return next((row for row in rows if row.outcome == outcome), None)

    return until(found)


@pytest.mark.skipif(sys.platform != "linux", reason="the state folder is another there")
@pytest.mark.parametrize(
    ("keys", "line", "outcome", "saved"),
    [
        (["<Tab>"], "x = one(two)", "accepted", 8),
        (["<M-w>"], "x = one", "partly", 3),
        (["<M-w>", "<Tab>"], "x = one(two)", "accepted", 8),
        (["o", "n", "<Tab>"], "x = one(two)", "accepted", 6),
        (list("one(two)"), "x = one(two)", "typed", 0),
        (["y"], "x = y", "rejected", 0),
    ],
    ids=["accept", "a word", "a word and the rest", "typed and the rest", "typed", "something else"],
)
def test_what_a_user_does_is_what_is_counted(desk: Desk, keys, line: str, outcome: str, saved: int):
    press(desk, keys, line)
    row = counted(desk, outcome)
    assert row.saved == saved
    assert row.client == "Neovim"
