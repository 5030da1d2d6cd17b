"""The price of a look follows what was counted, also before a restart, until the counts are deleted."""

import asyncio
import time

import pytest
from mercury_engine.utility import Utility

from mercury_lsp.completion.price import Price
from mercury_lsp.statistics import OutcomeRecord, Statistics, store

TAKEN = OutcomeRecord(int(time.time()), "go", "Neovim", "bundled", True, 0.8, 12.5, 8, "accepted", 8)


def cost(price: Price) -> float:
    return price.gate(Utility(), "auto", "go").wrong_cost


async def until_cost(price: Price, wanted: float) -> None:
    while cost(price) != pytest.approx(wanted):
        await asyncio.sleep(0.01)


@pytest.fixture
def folder(tmp_path):
    store.add(tmp_path / "state" / "statistics", [TAKEN] * 100)
    return tmp_path / "state" / "statistics"


async def test_what_was_counted_before_a_restart_sets_the_price(folder):
    price = Price()
    assert cost(price) == Utility().wrong_cost
    Statistics(price, folder).switch(True)
    await asyncio.wait_for(until_cost(price, Utility().wrong_cost / 2), 60)


async def test_deleted_counts_and_counts_switched_off_set_it_back(folder, monkeypatch):
    monkeypatch.setattr("mercury_lsp.statistics.statistics.GATHER_SECONDS", 0.0)
    price = Price()
    statistics = Statistics(price, folder)
    statistics.switch(True)
    await asyncio.wait_for(until_cost(price, Utility().wrong_cost / 2), 60)
    store.reset(folder)
    statistics._put(TAKEN)
    await asyncio.wait_for(until_cost(price, cost_after_one()), 60)
    statistics.switch(False)
    assert cost(price) == Utility().wrong_cost
    statistics.close()
    statistics.wait()


def cost_after_one() -> float:
    price = Price()
    price.learn("go", True)
    return cost(price)
