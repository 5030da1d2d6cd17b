"""One engine for several connections: the order of answers, and who loads it."""

import asyncio
import gc
import sys
from threading import Event

import pytest
from mercury_engine.api import Control, Fill, FillRequest
from mercury_engine.errors import Cancelled, ModelNotFound

from mercury_lsp.engine_host.engines import Engines, Lease
from mercury_lsp.engine_host.worker import MAX_CONCURRENT_ANSWERS, load_engine
from mercury_lsp.settings import Settings
from tests.support.fake_engine import FakeEngine


class Echoing(FakeEngine):
    """Fills with the near prefix; held from the start."""

    def __init__(self):
        super().__init__()
        self.held = True

    def fill(self, request: FillRequest) -> Fill:
        return Fill(request.near, 1.0, steps=1, elapsed=0.0)


class Desk:
    """Several connections to one engine, whose first fill is running."""

    def __init__(self, names: str, engine: Echoing | None = None):
        self.engine = engine or Echoing()
        self.loads: list[Settings] = []
        self.engines = Engines(self.load)
        self.leases = {name: self.engines.lease() for name in names}

    def load(self, settings: Settings) -> Echoing:
        self.loads.append(settings)
        return self.engine

    async def begin(self, ahead: bool = False) -> "asyncio.Task[Fill | None]":
        for lease in self.leases.values():
            await lease.load(Settings())
        first = self.ask(next(iter(self.leases)), "first", ahead)
        assert await asyncio.to_thread(self.engine.begun.wait, 10)
        return first

    def ask(self, name: str, text: str, ahead: bool = False) -> "asyncio.Task[Fill | None]":
        return asyncio.ensure_future(self.leases[name].fill(FillRequest(near=text), ahead=ahead))


@pytest.fixture
def one_at_once(monkeypatch):
    monkeypatch.setattr("mercury_lsp.engine_host.worker.MAX_CONCURRENT_ANSWERS", 1)


async def until(holds) -> None:
    while not holds():
        await asyncio.sleep(0.002)


async def test_requests_during_a_fill_join_it_up_to_a_limit():
    desk = Desk("abcde")
    asked = [await desk.begin(), *(desk.ask(name, name) for name in "abcde")]
    await until(lambda: len(desk.engine.asked_near) == MAX_CONCURRENT_ANSWERS)
    await asyncio.sleep(0.01)
    assert desk.engine.asked_near == ["first", "a", "b", "c"]
    desk.engine.held = False
    assert [(await each).text for each in asked] == ["first", *"abcde"]


async def test_looking_ahead_joins_no_fill_and_gives_way_to_requests():
    desk = Desk("ab")
    first, ahead = await desk.begin(), desk.ask("b", "ahead", ahead=True)
    await asyncio.sleep(0.01)
    assert desk.engine.asked_near == ["first"]
    desk.engine.held = False
    assert (await first).text == "first" and (await ahead).text == "ahead"
    desk.engine.held = True
    ahead = desk.ask("b", "ahead again", ahead=True)
    await until(lambda: desk.engine.asked_near[-1] == "ahead again")
    asked = desk.ask("a", "asked")
    with pytest.raises(Cancelled):
        await ahead
    desk.engine.held = False
    assert (await asked).text == "asked"


@pytest.mark.usefixtures("one_at_once")
async def test_connections_are_served_in_turn_however_much_each_asks():
    desk = Desk("abc")
    asked = [await desk.begin(), desk.ask("a", "a1"), desk.ask("a", "a2"), desk.ask("b", "b1"), desk.ask("c", "c1")]
    await asyncio.sleep(0)
    desk.engine.held = False
    await asyncio.gather(*asked)
    assert desk.engine.asked_near == ["first", "b1", "c1", "a1", "a2"]


@pytest.mark.usefixtures("one_at_once")
async def test_requests_go_before_looking_ahead():
    desk = Desk("ab")
    asked = [await desk.begin(), desk.ask("b", "ahead", ahead=True), desk.ask("a", "asked")]
    await asyncio.sleep(0)
    desk.engine.held = False
    await asyncio.gather(*asked)
    assert desk.engine.asked_near == ["first", "asked", "ahead"]


async def test_looking_ahead_is_given_up_for_another_connections_request():
    desk = Desk("ab")
    ahead = await desk.begin(ahead=True)
    asked = desk.ask("b", "asked")
    with pytest.raises(Cancelled):
        await ahead
    desk.engine.held = False
    assert (await asked).text == "asked"


@pytest.mark.usefixtures("one_at_once")
async def test_a_request_cancelled_while_it_waits_never_reaches_the_engine():
    desk = Desk("ab")
    first, waiting, last = await desk.begin(), desk.ask("b", "waiting"), desk.ask("b", "last")
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    desk.engine.held = False
    await asyncio.gather(first, last)
    assert desk.engine.asked_near == ["first", "last"]


async def test_several_loads_of_the_same_engine_are_one():
    desk = Desk("abcd")
    await asyncio.gather(*(lease.load(Settings(deadline_ms=1 + n)) for n, lease in enumerate(desk.leases.values())))
    assert len(desk.loads) == 1


async def test_an_unused_engine_is_kept_until_another_needs_its_memory():
    desk = Desk("ab")
    a, b = desk.leases.values()
    await a.load(Settings())
    a.close()
    assert [users for _, users in desk.engines.loaded()] == [0]
    await b.load(Settings())
    assert len(desk.loads) == 1
    await b.load(Settings(model="other"))
    assert [users for _, users in desk.engines.loaded()] == [1]
    assert [settings.model for settings in desk.loads] == [None, "other"]


async def test_replacing_the_model_cancels_waiting_requests_and_the_old_one_is_not_asked():
    desk, go = Desk("ab"), Event()
    a, b = desk.leases.values()
    desk.engines._load = lambda settings: go.wait(10) and desk.load(settings)
    loading = asyncio.ensure_future(a.load(Settings()))
    await asyncio.sleep(0)
    waiting, old = desk.ask("a", "first"), a._worker
    await asyncio.sleep(0)
    replaced = asyncio.ensure_future(a.load(Settings(model="other")))
    with pytest.raises(Cancelled):
        await waiting
    outcomes = []
    old.ask(FillRequest(near="late"), Control(), b, outcomes.append)
    assert [type(each) for each in outcomes] == [Cancelled]
    go.set()
    await asyncio.gather(loading, replaced)
    desk.engine.held = False
    assert (await desk.ask("a", "next")).text == "next"


async def test_a_request_given_up_while_the_model_loads_is_not_kept():
    desk, go = Desk("a"), Event()
    lease = desk.leases["a"]
    desk.engines._load = lambda settings: go.wait(10) and desk.load(settings)

    async def ask_and_give_up(text: str) -> None:
        asked = desk.ask("a", text)
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait([asked])

    for number in range(20):
        await ask_and_give_up(f"early {number}")
    assert len(lease._early) == 1
    loading = asyncio.ensure_future(lease.load(Settings()))
    for number in range(20):
        await ask_and_give_up(f"{number}")
    assert len(lease._worker._waiting) == 1
    go.set()
    await loading
    desk.engine.held = False
    assert (await desk.ask("a", "next")).text == "next" and desk.engine.asked_near == ["next"]


async def test_after_a_failed_load_the_next_request_tries_again():
    def fail(settings: Settings) -> Echoing:
        tried.append(settings)
        raise RuntimeError("no")

    tried: list[Settings] = []
    engines = Engines(fail)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            await engines.lease().load(Settings())
    assert len(tried) == 2


def test_a_lease_may_be_closed_before_it_has_loaded():
    Lease(Engines(lambda settings: Echoing())).close()


async def test_the_engine_rests_once_after_the_last_request(monkeypatch):
    monkeypatch.setattr("mercury_lsp.engine_host.worker.IDLE_REST_SECONDS", 0.01)
    desk = Desk("a")
    first, waiting = await desk.begin(), desk.ask("a", "next")
    await asyncio.sleep(0.05)
    assert not desk.engine.rested.is_set(), "a fill is under way"
    desk.engine.held = False
    await asyncio.gather(first, waiting)
    assert await asyncio.to_thread(desk.engine.rested.wait, 10)


def test_garbage_collection_is_on_again_after_a_load_even_a_failed_one(tmp_path):
    with pytest.raises(ModelNotFound):
        load_engine(Settings(model=str(tmp_path / "none")))
    assert gc.isenabled()


async def test_the_engines_thread_asks_for_the_interpreters_lock_sooner_than_a_slice_of_long_work_ends(monkeypatch):
    """With Python's interval, a loop that gives the lock back more often than that is never asked for it."""
    monkeypatch.setattr(sys, "setswitchinterval", (asked := []).append)
    await Desk("a").leases["a"].load(Settings())
    assert asked and max(asked) <= 0.0005
