"""One engine for several connections, and who loads it."""

import asyncio

from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.settings import Settings
from tests.support.fake_engine import FakeEngine


class Desk:
    """Several connections to one engine."""

    def __init__(self, names: str):
        self.loads: list[Settings] = []
        self.engines = Engines(self.load)
        self.leases = {name: self.engines.lease() for name in names}

    def load(self, settings: Settings) -> FakeEngine:
        self.loads.append(settings)
        return FakeEngine()


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
