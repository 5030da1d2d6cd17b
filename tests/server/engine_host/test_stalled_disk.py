"""A disk that does not answer holds up nobody but who named it."""

import asyncio
from threading import Event

import pytest

from mercury_lsp.engine_host import own_thread
from mercury_lsp.engine_host.own_thread import answered
from mercury_lsp.errors import SettingsError
from tests.support.editor import Editor, script


async def test_the_loop_runs_on_while_a_disk_is_stalled_and_the_disk_is_given_up(monkeypatch: pytest.MonkeyPatch):
    stalled, turns = Event(), 0
    monkeypatch.setattr(own_thread, "DISK_SECONDS", 0.2)
    asking = asyncio.ensure_future(answered(stalled.wait, "/mnt/model"))
    while not asking.done():
        turns += 1
        await asyncio.sleep(0.001)
    with pytest.raises(SettingsError, match="/mnt/model does not answer"):
        await asking
    assert turns > 3
    stalled.set()


def test_a_model_that_is_stuck_is_given_up_for_another_by_the_setting():
    with Editor() as editor:
        editor.initialize(options={"model": "stuck"})
        uri = editor.opened(script() + "x = ")
        editor.notify("workspace/didChangeConfiguration", {"settings": {"mercury": {"model": None}}})
        assert len(editor.items(uri, 1, 4)) == 1
