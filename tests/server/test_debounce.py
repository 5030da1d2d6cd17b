"""Delayed calls, and work that waits for a pause."""

import asyncio

import pytest

from mercury_lsp import debounce
from mercury_lsp.debounce import Debounced, TypingPauses
from tests.support.typist import JumpingLoop


def test_it_calls_once_when_it_has_not_been_postponed_for_a_while():
    loop = JumpingLoop()
    loop.run_until_complete(_calls_once())
    loop.close()


async def _calls_once() -> None:
    loop, called = asyncio.get_running_loop(), []
    later = Debounced(lambda: called.append(loop.time()))
    for _ in range(5):
        later.postpone(0.03)
        last = loop.time()
        await asyncio.sleep(0.01)
    assert called == []
    await asyncio.sleep(0.1)
    assert len(called) == 1 and called[0] == pytest.approx(last + 0.03)


async def test_it_does_not_call_when_it_is_cancelled():
    called = []
    later = Debounced(lambda: called.append(1))
    later.cancel()
    later.postpone(0.001)
    later.cancel()
    await asyncio.sleep(0.02)
    assert called == []


async def test_documents_opened_together_are_worked_on_one_in_a_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(debounce, "TYPING_PAUSE_SECONDS", 0.0)
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
