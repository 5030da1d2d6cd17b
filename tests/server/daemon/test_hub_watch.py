"""When a hub counts as hanging."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from mercury_lsp.daemon import hub_watch, lock
from mercury_lsp.daemon.hub_watch import POLLS_BEFORE_END, HubWatch, Peer

HUB = 12_345


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Processes that were ended; polls follow one another at once."""
    found: list[int] = []
    monkeypatch.setattr(os, "kill", lambda process, number: found.append(process) if number == signal.SIGKILL else None)
    monkeypatch.setattr(lock, "owner", lambda _: HUB)
    monkeypatch.setattr(hub_watch, "POLL_SECONDS", 0)
    return found


async def polls(watch: HubWatch, count: int = 20) -> None:
    watching = asyncio.create_task(watch.run())
    for _ in range(count):
        await asyncio.sleep(0)
    watching.cancel()


async def never(peer: Peer) -> None:
    await peer.heard(asyncio.get_running_loop().create_future())


async def test_a_hub_that_answers_no_ping_is_ended_and_a_relay_is_not(ended: list[int]):
    watch, pinged = HubWatch(Path("lock")), list[int]()
    for process in (HUB, HUB + 1):
        with watch.connected(process, lambda process=process: pinged.append(process)) as peer:
            reading = asyncio.create_task(never(peer))
            await polls(watch)
            reading.cancel()
    assert set(ended) == {HUB} and pinged.count(HUB) == pinged.count(HUB + 1) == 1


async def test_a_hub_that_answers_on_one_of_its_connections_lives(ended: list[int]):
    watch = HubWatch(Path("lock"))
    with (
        watch.connected(HUB, lambda: setattr(answers, "was_heard", True)) as answers,
        watch.connected(HUB, int) as other,
    ):
        assert answers is other
        reading = [asyncio.create_task(never(peer)) for peer in (answers, other)]
        await polls(watch, 40)
        for each in reading:
            each.cancel()
    assert ended == []


async def test_a_hub_whose_messages_wait_for_us_is_not_ended(ended: list[int]):
    watch = HubWatch(Path("lock"))
    with watch.connected(HUB, int) as peer:
        await polls(watch, 10 * POLLS_BEFORE_END)
        assert peer.waiting == 0 and ended == []
    await polls(watch)
    assert ended == []
