"""What the model gets, and what is shown, of a file of settings with a password in a real Neovim."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.neovim import Desk, Neovim, shows, until

FAKE_SERVER = [sys.executable, str(Path(__file__).parents[1] / "support" / "fake_server.py")]
"""The real server, with an engine that keeps what it is given and answers with a script of the document."""

PASSWORD = "Sonnenblume"

DB_INI = f"""; [[{{"text": "app"}}]]
[database]
host = db.example.com
password = {PASSWORD}
port = 5432
user =
"""

GIVEN = (
    "return (require('mercury.client').get(0):request_sync('test/given', vim.empty_dict(), 9999) or {}).result or {}"
)


def given(nvim: Neovim) -> dict[str, Any]:
    """What the engine was given last."""
    return nvim.lua(GIVEN)


@pytest.fixture
def nvim(desk: Desk) -> Neovim:
    return desk.start_attached(DB_INI, name="db.ini", cmd=FAKE_SERVER)


def test_in_db_ini_a_suggestion_is_shown_and_was_not_given_the_password(nvim: Neovim) -> None:
    assert nvim.lua("return vim.bo.filetype") == "dosini"
    nvim.keys("GA <Esc>a")
    nvim.keys("x<BS>")
    shows(nvim, "app")
    text = repr(given(nvim))
    assert "db.example.com" in text and "port = 5432" in text
    assert not any(PASSWORD[at : at + 4] in text for at in range(len(PASSWORD) - 3))


def test_on_the_passwords_line_nothing_is_asked_or_shown(nvim: Neovim) -> None:
    nvim.keys("4GAx<BS>")
    until(lambda: nvim.lines()[3] == f"password = {PASSWORD}")
    nvim.read_all_replies()
    assert nvim.ghost() == ""
    assert not given(nvim)
