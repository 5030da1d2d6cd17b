"""When models are measured: while nobody asks for anything, and other programs rest."""

import asyncio
import sys
from pathlib import Path

import pytest
from mercury_engine.api import FillRequest

from mercury_lsp.engine_host import idle_measurement
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.engine_host.idle_measurement import IdleMeasurement, is_busy
from mercury_lsp.settings import Settings
from tests.support.fake_engine import FakeEngine

PROGRAM = """
import pathlib, sys, time
log = pathlib.Path(sys.argv[1])
models, seconds = int(sys.argv[2]), float(sys.argv[3])
begun = log.read_text() if log.exists() else ""
log.write_text(begun + "begun ")
time.sleep(seconds)
log.write_text(begun + "begun ended ")
sys.exit(0 if begun.count("ended") < models else 1)
"""
"""Stands for a measurement; as many find a model as there are."""


class Desk:
    """Engines on a machine where a quiet minute is over at once."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        self.is_busy = False
        self.engines = Engines(lambda settings: FakeEngine())
        self._log, self._patch = tmp_path / "log", monkeypatch
        monkeypatch.setattr(idle_measurement, "is_busy", lambda: self.is_busy)
        monkeypatch.setattr(idle_measurement, "QUIET_SECONDS", 0.0)

    def begin(self, models: int, seconds: float = 0.0) -> None:
        """Measure as many models, each in this time."""
        command = [sys.executable, "-c", PROGRAM, str(self._log), str(models), str(seconds)]
        self._patch.setattr(idle_measurement, "COMMAND", command)
        IdleMeasurement(self.engines).postpone()

    @property
    def log(self) -> list[str]:
        return self._log.read_text().split() if self._log.exists() else []


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


async def until(holds) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.002)


async def test_models_are_measured_one_after_another_until_none_is_left(desk: Desk):
    desk.begin(models=2)
    postpone = desk.engines.on_request
    await until(lambda: desk.engines.on_request != postpone)
    assert desk.log == ["begun", "ended"] * 3


async def test_nothing_is_measured_while_the_machine_is_busy(desk: Desk):
    desk.is_busy = True
    desk.begin(models=0)
    for _ in range(100):
        await asyncio.sleep(0)
    assert desk.log == []
    desk.is_busy = False
    await until(lambda: desk.log)


@pytest.mark.parametrize("event", ["load", "request"])
async def test_a_request_ends_the_measurement_and_another_begins_later(desk: Desk, monkeypatch, event: str):
    lease = desk.engines.lease()
    if event == "request":
        await lease.load(Settings())
    killed: list[int] = []
    kill = asyncio.subprocess.Process.kill
    monkeypatch.setattr(asyncio.subprocess.Process, "kill", lambda self: (killed.append(self.pid), kill(self)))
    desk.begin(models=0, seconds=600.0)
    await until(lambda: desk.log == ["begun"])
    monkeypatch.setattr(idle_measurement, "QUIET_SECONDS", 600.0)
    if event == "request":
        await lease.fill(FillRequest(near="x"))
    else:
        await lease.load(Settings())
    await until(lambda: killed)
    assert desk.log == ["begun"]
    monkeypatch.setattr(idle_measurement, "QUIET_SECONDS", 0.0)
    desk.engines.on_request()
    await until(lambda: desk.log == ["begun", "begun"])


@pytest.mark.parametrize(("running", "busy"), [(0.0, False), (1.9, False), (2.1, True), (9.0, True)])
def test_a_machine_counts_as_busy_from_half_a_program_per_processor_on(monkeypatch, running: float, busy: bool):
    monkeypatch.setattr(idle_measurement.os, "getloadavg", lambda: (running, 0.0, 0.0))
    monkeypatch.setattr(idle_measurement.os, "cpu_count", lambda: 4)
    assert is_busy() is busy
