"""Logs, statistics and the choice of a model: readable by their owner only, and never written through a link."""

import logging
import os
import stat
import sys
import time
from pathlib import Path

import pytest

from mercury_lsp import default_model
from mercury_lsp.daemon.address import UnixAddress, log_file
from mercury_lsp.errors import StatisticsError
from mercury_lsp.installed_models.store import Store
from mercury_lsp.relay.join import MAX_LOG_BYTES, open_log
from mercury_lsp.statistics import store
from tests.server.statistics.test_store import written

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no such links and modes")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of logs and statistics."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    made = tmp_path / "mercury-lsp"
    made.mkdir(0o700)
    return made


@pytest.fixture
def address(tmp_path: Path) -> UnixAddress:
    return UnixAddress(tmp_path / "socket")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def another_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all files belong to another user."""
    user = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: user)


def planted(path: Path, tmp_path: Path, how: str) -> Path:
    """A file that must stay as it is, to which `path` leads."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    {"symbolic": os.symlink, "hard": os.link}[how](precious, path)
    return precious


@pytest.mark.parametrize("how", ["symbolic", "hard"])
def test_a_log_is_not_written_through_a_link(address: UnixAddress, tmp_path: Path, capsys, how: str):
    precious = planted(log_file(address), tmp_path, how)
    with open_log(address) as log:
        log.write(b"a line")
    assert precious.read_text() == "precious"
    assert "nothing is logged" in (said := capsys.readouterr().err) and "is a link" in said and said.count("\n") == 1


def test_another_users_log_is_not_written(address: UnixAddress, monkeypatch, capsys):
    log_file(address).write_text("theirs")
    another_users(monkeypatch)
    with open_log(address) as log:
        log.write(b"a line")
    assert log_file(address).read_text() == "theirs"
    assert "nothing is logged" in capsys.readouterr().err


def test_a_log_is_for_its_owner_only_and_a_long_one_is_emptied(address: UnixAddress):
    path = log_file(address)
    path.write_text("old")
    path.chmod(0o644)
    with open_log(address) as log:
        log.write(b" and new")
    assert path.read_text() == "old and new" and mode(path) == 0o600
    os.truncate(path, MAX_LOG_BYTES + 1)
    with open_log(address) as log:
        log.write(b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("how", ["symbolic", "hard"])
def test_statistics_are_not_written_through_a_link(state: Path, tmp_path: Path, caplog, how: str):
    (folder := state / "statistics").mkdir(0o700)
    precious = planted(folder / f"{time.strftime('%Y-%m')}.jsonl", tmp_path, how)
    with caplog.at_level(logging.WARNING):
        written(folder)
    assert precious.read_text() == "precious"
    [message] = [record.getMessage() for record in caplog.records]
    assert "is a link" in message


def test_another_users_statistics_are_neither_read_nor_written(state: Path, monkeypatch, caplog):
    folder = state / "statistics"
    written(folder)
    [file] = folder.iterdir()
    before = file.read_bytes()
    another_users(monkeypatch)
    written(folder)
    assert file.read_bytes() == before and len(caplog.records) == 1
    with pytest.raises(StatisticsError, match="not a file of yours"):
        store.read(folder, 0)


def test_statistics_that_others_could_read_are_made_private(state: Path):
    (folder := state / "statistics").mkdir(0o700)
    (file := folder / f"{time.strftime('%Y-%m')}.jsonl").touch(0o644)
    file.chmod(0o644)
    written(folder)
    assert mode(file) == 0o600


def test_the_choice_of_a_model_is_for_its_owner_only_whatever_the_umask(tmp_path: Path):
    (tmp_path / "data" / "mercury-lsp").mkdir(parents=True)
    before = os.umask(0)
    try:
        Store().make_default("bundled")
    finally:
        os.umask(before)
    assert mode(default_model.path()) == 0o600


def test_a_link_that_is_planted_for_the_choice_is_not_followed(tmp_path: Path):
    folder = default_model.path().parent
    folder.mkdir(parents=True)
    precious = planted(folder / "default-model.new", tmp_path, "symbolic")
    Store().make_default("bundled")
    assert precious.read_text() == "precious" and default_model.path().read_text() == "bundled\n"
