"""The statistics survive other processes, damaged files and read-only folders, and the server survives any failure."""

import logging
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest

from mercury_lsp.errors import StatisticsError
from mercury_lsp.statistics import OutcomeRecord, store
from mercury_lsp.statistics.writer import Writer

ROW = OutcomeRecord(int(time.time()), "python", "Neovim", "bundled", True, 0.8, 12.5, 8, "accepted", 0, 8, 8)

WRITE = """
import sys, time
from pathlib import Path
from mercury_lsp.statistics import OutcomeRecord
from mercury_lsp.statistics.writer import Writer
writer = Writer(Path(sys.argv[1]))
for number in range(200):
    writer.put(OutcomeRecord(int(time.time()), "python", sys.argv[2], "m", True, 0.8, 1.0, 8, "accepted", 0, 8, 8))
writer.close()
writer.wait(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "mercury-lsp" / "statistics.sqlite"


def written(path: Path, *rows: OutcomeRecord) -> None:
    writer = Writer(path)
    for row in rows or (ROW,):
        writer.put(row)
    writer.close()
    writer.wait(30)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_written_rows_are_read_back(path: Path):
    rows = [ROW, replace(ROW, outcome="rejected", automatic=False, saved=0, kept=0)]
    written(path, *rows)
    assert store.read(path, 0) == rows


def test_only_rows_since_the_given_time_are_read(path: Path):
    written(path, replace(ROW, shown_at=ROW.shown_at - 100), ROW)
    assert store.read(path, ROW.shown_at - 1) == [ROW]


def test_without_a_row_there_is_no_file(path: Path):
    Writer(path).close()
    assert not path.parent.exists()
    assert store.read(path, 0) == []


def test_the_file_is_the_users_alone(path: Path):
    written(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_file_is_below_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert store.default_path() == tmp_path / "mercury-lsp" / "statistics.sqlite"


def test_a_row_has_room_only_for_figures_and_names():
    text = {"language", "client", "model", "outcome"}
    assert {field.name for field in fields(OutcomeRecord) if field.type not in (int, float, bool)} == text


def test_several_processes_write_at_once(path: Path):
    started = [subprocess.Popen([sys.executable, "-c", WRITE, str(path), name]) for name in ("a", "b", "c")]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    clients = [row.client for row in store.read(path, 0)]
    assert {name: clients.count(name) for name in "abc"} == {"a": 200, "b": 200, "c": 200}


def test_rows_wait_while_another_process_has_locked_the_file(path: Path, caplog, monkeypatch):
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.05)
    written(path)
    writer = Writer(path)
    with sqlite3.connect(path) as other:
        other.execute("BEGIN IMMEDIATE")
        writer.put(ROW)
        until = time.monotonic() + 30
        while not warnings(caplog) and time.monotonic() < until:
            time.sleep(0.02)
    other.close()
    writer.put(ROW)
    writer.close()
    writer.wait(30)
    assert len(store.read(path, 0)) == 3
    assert len(warnings(caplog)) == 1 and "locked" in warnings(caplog)[0]


def test_a_file_that_stays_locked_does_not_delay_the_exit(path: Path, monkeypatch):
    monkeypatch.setattr(store, "BUSY_SECONDS", 60.0)
    written(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer = Writer(path)
    writer.put(ROW)
    writer.close()
    writer.wait(0.2)
    before = len(store.read(path, 0))
    other.close()
    writer.wait(30)
    assert len(store.read(path, 0)) == before + 1


@pytest.mark.parametrize(
    "content", [b"not a database, but of some length " * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_damaged_file_is_renamed_and_a_new_one_started(path: Path, caplog, content: bytes):
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    written(path)
    assert store.read(path, 0) == [ROW]
    [aside] = [other for other in path.parent.iterdir() if "damaged" in other.name]
    assert aside.read_bytes() == content
    assert len(warnings(caplog)) == 1 and aside.name in warnings(caplog)[0]


def test_a_file_damaged_while_being_written_is_renamed_too(path: Path, caplog):
    written(path, *[ROW] * 2000)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    written(path)
    assert store.read(path, 0) == [ROW]
    assert len([other for other in path.parent.iterdir() if "damaged" in other.name]) == 1


def test_a_file_that_another_process_has_replaced_is_left_alone(path: Path, caplog):
    written(path)
    store.set_aside(path, seen=-1)
    assert store.read(path, 0) == [ROW]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="no folder is read-only for root")
def test_a_read_only_folder_costs_one_line_of_the_log(path: Path, caplog):
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o500)
    try:
        writer = Writer(path)
        writer.put(ROW)
        writer.close()
        writer.wait(30)
        writer.put(ROW)
        writer.close()
        writer.wait(30)
    finally:
        path.parent.chmod(0o700)
    assert len(warnings(caplog)) == 1 and "cannot be written" in warnings(caplog)[0]


def test_a_folder_that_cannot_be_created_costs_one_line_of_the_log(tmp_path: Path, caplog):
    (tmp_path / "state").write_text("a file")
    writer = Writer(tmp_path / "state" / "statistics.sqlite")
    for _ in range(3):
        writer.put(ROW)
        writer.close()
        writer.wait(30)
    assert len(warnings(caplog)) == 1 and "cannot be written" in warnings(caplog)[0]


def test_a_read_only_file_costs_one_line_of_the_log(path: Path, caplog, monkeypatch):
    written(path)
    read_only = f"{path.as_uri()}?mode=ro"
    monkeypatch.setattr(
        store, "connect", lambda _: sqlite3.connect(read_only, uri=True, check_same_thread=False, isolation_level=None)
    )
    written(path, ROW, ROW)
    assert store.read(path, 0) == [ROW]
    assert len(warnings(caplog)) == 1 and "cannot be written" in warnings(caplog)[0]


def test_a_newer_versions_file_is_left_as_it_is(path: Path, caplog):
    written(path)
    with sqlite3.connect(path) as newer:
        newer.execute(f"PRAGMA user_version = {store.SCHEMA_VERSION + 1}")
    newer.close()
    before = path.read_bytes()
    written(path)
    assert path.read_bytes() == before
    assert len(warnings(caplog)) == 1 and "newer" in warnings(caplog)[0]
    with pytest.raises(StatisticsError, match="upgrade"):
        store.read(path, 0)


def test_reading_a_damaged_file_says_what_to_do(path: Path):
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database, but of some length " * 100)
    with pytest.raises(StatisticsError, match="sets it aside"):
        store.read(path, 0)


def test_old_rows_are_deleted(path: Path):
    written(path, replace(ROW, shown_at=ROW.shown_at - 401 * 86_400), ROW)
    assert len(store.read(path, 0)) == 2
    written(path)
    assert [row.shown_at for row in store.read(path, 0)] == [ROW.shown_at] * 2


def test_the_oldest_of_too_many_rows_are_deleted(path: Path, monkeypatch):
    monkeypatch.setattr(store, "MAX_ROWS", 10)
    written(path, *[replace(ROW, shown_at=ROW.shown_at - age) for age in range(30)])
    written(path)
    assert [ROW.shown_at - row.shown_at for row in store.read(path, 0)] == [*range(9, 0, -1), 0, 0]


def test_a_reset_deletes_all_rows_and_the_server_keeps_writing(path: Path):
    writer = Writer(path)
    writer.put(ROW)
    written(path)
    assert store.reset(path) >= 1
    writer.put(ROW)
    writer.close()
    writer.wait(30)
    assert ROW in store.read(path, 0)
    assert store.reset(path) >= 1
    assert store.read(path, 0) == []


def test_putting_never_blocks(path: Path, monkeypatch):
    all_put = threading.Event()
    tried = []

    def opened(path: Path):
        all_put.wait(60)
        tried.append(path)
        raise OSError("no such disk")

    monkeypatch.setattr(store, "connect", opened)
    writer = Writer(path)
    for _ in range(20_000):
        writer.put(ROW)
    assert not tried
    all_put.set()
    writer.close()
    writer.wait(30)
    assert tried
