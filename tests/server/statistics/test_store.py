"""The statistics survive other processes and damaged lines, and the server survives any failure to write them."""

import asyncio
import logging
import os
import stat
import subprocess
import sys
import threading
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest

from mercury_lsp.completion.price import Price
from mercury_lsp.statistics import OutcomeRecord, Statistics, store
from mercury_lsp.statistics import statistics as writing

ROW = OutcomeRecord(int(time.time()), "python", "Neovim", "bundled", True, 0.8, 12.5, 8, "accepted", 8)

ADD = """
import sys, time
from pathlib import Path
from mercury_lsp.statistics import OutcomeRecord, store
row = OutcomeRecord(int(time.time()), "lua", sys.argv[2], "m", True, 0.8, 1.0, 8, "typed", 0)
for number in range(200):
    store.add(Path(sys.argv[1]), [row])
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "mercury-lsp" / "statistics"


def written(path: Path, *rows: OutcomeRecord) -> None:
    """Write rows as a server does, which is then closed."""

    async def use() -> None:
        statistics = Statistics(Price(), path)
        for row in rows or (ROW,):
            statistics._put(row)
        statistics.close()
        statistics.wait()

    asyncio.run(use())


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_written_rows_are_read_back(path: Path):
    rows = [ROW, replace(ROW, outcome="rejected", automatic=False, saved=0)]
    written(path, *rows)
    assert store.read(path, 0) == rows


def test_the_file_is_the_users_alone(path: Path):
    written(path)
    [file] = path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_row_has_room_only_for_figures_and_names():
    text = {"language", "client", "model", "outcome"}
    assert {field.name for field in fields(OutcomeRecord) if field.type not in (int, float, bool)} == text


def test_several_processes_write_at_once(path: Path):
    started = [subprocess.Popen([sys.executable, "-c", ADD, str(path), name]) for name in ("a", "b", "c")]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    clients = [row.client for row in store.read(path, 0)]
    assert {name: clients.count(name) for name in "abc"} == {"a": 200, "b": 200, "c": 200}


def test_damaged_lines_are_left_out(path: Path):
    written(path)
    [file] = path.iterdir()
    file.write_bytes(b"\xff\n[1, 2]\n{}\n" + file.read_bytes() + b'[176, "pyth')
    assert store.read(path, 0) == [ROW]


def test_a_folder_that_cannot_be_created_costs_one_line_of_the_log(tmp_path: Path, caplog):
    (tmp_path / "state").write_text("a file")

    async def use() -> None:
        statistics = Statistics(Price(), tmp_path / "state" / "statistics")
        for _ in range(3):
            statistics._put(ROW)
            statistics.close()
            statistics.wait()

    asyncio.run(use())
    assert len(warnings(caplog)) == 1 and "cannot be written" in warnings(caplog)[0]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="no folder is read-only for root")
def test_a_read_only_folder_costs_one_line_of_the_log(path: Path, caplog):
    path.mkdir(parents=True, mode=0o500)
    written(path)
    assert len(warnings(caplog)) == 1 and "cannot be written" in warnings(caplog)[0]


def test_old_rows_are_deleted(path: Path):
    written(path)
    recent, old = (
        path / f"{time.strftime('%Y-%m', time.localtime(time.time() - 86_400 * days))}.jsonl" for days in (300, 401)
    )
    recent.touch()
    old.touch()
    written(path)
    assert recent.exists() and not old.exists()


def test_a_reset_deletes_all_rows_and_the_server_keeps_writing(path: Path):
    written(path)
    assert store.reset(path) == 1
    assert store.read(path, 0) == []
    written(path)
    assert store.read(path, 0) == [ROW]


def test_rows_are_written_soon(path: Path, monkeypatch):
    monkeypatch.setattr(writing, "GATHER_SECONDS", 0.01)

    async def use() -> None:
        statistics = Statistics(Price(), path)
        statistics._put(ROW)
        while statistics._writing is None:
            await asyncio.sleep(0.01)
        statistics.wait()
        assert store.read(path, 0) == [ROW]

    asyncio.run(use())


def test_a_disk_that_does_not_answer_blocks_nobody_and_few_rows_wait(path: Path, monkeypatch):
    go_on, threads = threading.Event(), []
    monkeypatch.setattr(writing, "GATHER_SECONDS", 0.0)
    monkeypatch.setattr(writing, "MAX_WAITING_ROWS", 10)
    monkeypatch.setattr(store, "add", lambda *_: (threads.append(1), go_on.wait(60)))

    async def use() -> None:
        statistics = Statistics(Price(), path)
        for _ in range(30):
            statistics._put(ROW)
            await asyncio.sleep(0.001)
        assert len(threads) == 1 and len(statistics._waiting) == 10

    asyncio.run(use())
    go_on.set()
