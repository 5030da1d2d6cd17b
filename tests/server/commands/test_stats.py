"""`mercury-lsp stats`: tables, JSON and the reset."""

import io
import sys
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from mercury_lsp.cli import main
from mercury_lsp.statistics import OutcomeRecord, store
from mercury_lsp.statistics.store import Summary

NOW = int(time.time())
TAKEN = OutcomeRecord(NOW, "python", "Neovim", "bundled", True, 0.8, 10.0, 8, "accepted", 8)
PART = replace(TAKEN, outcome="partly", saved=5, latency_ms=20.0)
REFUSED = replace(TAKEN, outcome="rejected", saved=0, latency_ms=30.0)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def counted(*rows: OutcomeRecord) -> None:
    store.add(store.default_path(), rows)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["stats", *arguments]) == 0
    return capsys.readouterr().out


def test_the_figures_of_some_records():
    summary = Summary.of([TAKEN, PART, REFUSED, replace(REFUSED, outcome="typed")])
    assert (summary.shown, summary.accepted, summary.partly, summary.typed, summary.rejected) == (4, 1, 1, 1, 1)
    assert (summary.acceptance_rate, summary.characters_saved) == (0.5, 13)
    assert (summary.latency_ms_p50, summary.latency_ms_p95) == (20.0, 30.0)


def test_with_nothing_counted_there_is_a_friendly_sentence(state: Path, capsys):
    out = said(capsys)
    assert "No suggestions were counted in the last 30 days" in out
    assert list(state.iterdir()) == []


def test_the_tables_have_languages_days_and_the_sum(state: Path, capsys):
    counted(TAKEN, PART, REFUSED, replace(TAKEN, language="lua"))
    lines = [line.replace("│", " ").split() for line in said(capsys).splitlines()]
    assert ["python", "3", "1", "1", "67%", "1", "13", "20", "30"] in lines
    assert ["lua", "1", "1", "0", "100%", "0", "8", "10", "10"] in lines
    assert [line[0] for line in lines if line].count("all") == 2
    assert str(date.fromtimestamp(NOW)) in {line[0] for line in lines if line}


@pytest.mark.parametrize("days", ["0", "-1", "401", "many", 5000 * "9"], ids=lambda days: days[:9])
def test_impossible_days_are_refused(state: Path, capsys, days: str):
    with pytest.raises(SystemExit) as ended:
        main(["stats", "--days", days])
    assert ended.value.code == 2 and "is not a number from 1 to 400" in capsys.readouterr().err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["stats", *arguments]) == 2
    return capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_reset_asks_first(state: Path, capsys, monkeypatch):
    counted(TAKEN)
    monkeypatch.setattr(sys, "stdin", Terminal("no\n"))
    assert main(["stats", "--reset"]) == 1
    assert len(store.read(store.default_path(), 0)) == 1
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert "deleted 1 row\n" in said(capsys, "--reset")
    assert store.read(store.default_path(), 0) == []


def test_without_a_terminal_a_reset_needs_yes(state: Path, capsys, monkeypatch):
    counted(TAKEN, PART)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert "--yes" in refused(capsys, "--reset")
    assert "deleted 2 rows\n" in said(capsys, "--reset", "--yes")
    assert "deleted 0 rows\n" in said(capsys, "--reset", "--yes")
