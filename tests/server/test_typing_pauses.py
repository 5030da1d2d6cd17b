"""Work that waits for a pause leaves others their turn."""

import asyncio

import pytest

from mercury_lsp.server import typing_pauses
from mercury_lsp.server.typing_pauses import TypingPauses


async def test_documents_opened_together_are_worked_on_one_in_a_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(typing_pauses, "TYPING_PAUSE_SECONDS", 0.0)
    done: list[str] = []

    def work(uri: str) -> None:
        done.append(uri)
        if uri == "7":
            raise RuntimeError("one that fails must not hold up the others")

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    pauses = TypingPauses(work, ())
    for number in range(60):
        pauses.wait_for_pause(str(number))
    turns = 0
    while len(done) < 60:
        before = len(done)
        await asyncio.sleep(0)
        turns += 1
        assert len(done) - before <= 1
    assert turns >= 60 and done == [str(number) for number in range(60)]
    pauses.wait_for_pause("again")
    while done[-1] != "again":
        await asyncio.sleep(0)
    pauses.close()
