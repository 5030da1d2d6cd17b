"""One engine for several connections: the order of answers, and who loads it."""

import asyncio

import pytest
from mercury_engine.api import Fill, FillRequest
from mercury_engine.errors import Cancelled

from mercury_lsp.engine_host.engines import Engines
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
