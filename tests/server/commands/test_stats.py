"""`mercury-lsp stats`: tables, JSON, a plot, and the reset."""

import io
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from mercury_kernels.installation import install_command

from mercury_lsp.cli import main
from mercury_lsp.statistics import OutcomeRecord, store
from mercury_lsp.statistics.summary import Summary, by_day, by_language, day, percentile
from mercury_lsp.statistics.writer import Writer

NOW = int(time.time())
TAKEN = OutcomeRecord(NOW, "python", "Neovim", "bundled", True, 0.8, 10.0, 8, "accepted", 0, 8, 8)
PART = replace(TAKEN, outcome="partly", saved=5, kept=0, latency_ms=20.0)
REFUSED = replace(TAKEN, outcome="rejected", saved=0, kept=0, latency_ms=30.0)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def counted(*rows: OutcomeRecord) -> None:
    writer = Writer(store.default_path())
    for row in rows:
        writer.put(row)
    writer.close()
    writer.wait(30)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["stats", *arguments]) == 0
    return capsys.readouterr().out


def test_the_figures_of_some_records():
    summary = Summary.of([TAKEN, PART, REFUSED, replace(REFUSED, outcome="typed")])
    assert (summary.shown, summary.accepted, summary.partly, summary.typed, summary.rejected) == (4, 1, 1, 1, 1)
    assert (summary.kept, summary.acceptance_rate) == (1, 0.5)
    assert (summary.characters_saved, summary.characters_kept) == (13, 8)
    assert (summary.latency_ms_p50, summary.latency_ms_p95) == (20.0, 30.0)


def test_a_stub_is_right_and_short():
    long, typed = replace(TAKEN, length=10), replace(TAKEN, outcome="typed", saved=0, kept=0)
    assert Summary.of([TAKEN, typed, long, PART, REFUSED]).stubs == 2


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1), (0.5, 50), (0.95, 95), (1.0, 100)])
def test_percentiles_are_values_that_occurred(share: float, expected: float):
    assert percentile(range(1, 101), share) == expected


def test_languages_come_by_use_and_days_in_order():
    rows = [replace(TAKEN, language="lua"), TAKEN, replace(TAKEN, shown_at=NOW - 2 * 86_400)]
    assert list(by_language(rows)) == ["python", "lua"]
    assert list(by_day(rows)) == [day(NOW - 2 * 86_400), day(NOW)]


def test_with_nothing_counted_there_is_a_friendly_sentence(state: Path, capsys):
    out = said(capsys)
    assert "No suggestions were counted in the last 30 days" in out
    assert list(state.iterdir()) == []


def test_the_tables_have_languages_days_and_the_sum(state: Path, capsys):
    counted(TAKEN, PART, REFUSED, replace(TAKEN, language="lua"))
    lines = [line.replace("│", " ").split() for line in said(capsys).splitlines()]
    assert ["python", "3", "1", "1", "67%", "1", "1", "1", "13", "20", "30"] in lines
    assert ["lua", "1", "1", "0", "100%", "0", "1", "1", "8", "10", "10"] in lines
    assert [line[0] for line in lines if line].count("all") == 2
    assert day(NOW) in {line[0] for line in lines if line}


def test_earlier_days_are_left_out(state: Path, capsys):
    counted(TAKEN, replace(TAKEN, shown_at=NOW - 5 * 86_400))
    assert json.loads(said(capsys, "--json", "--days", "3"))["total"]["shown"] == 1
    assert json.loads(said(capsys, "--json", "--days", "8"))["total"]["shown"] == 2


def test_the_object_has_the_same_figures(state: Path, capsys):
    counted(TAKEN, REFUSED)
    figures = json.loads(said(capsys, "--json"))
    assert figures["total"] == figures["by_language"]["python"] == figures["by_day"][day(NOW)]
    assert figures["total"]["acceptance_rate"] == 0.5


def test_the_object_of_nothing_is_empty(state: Path, capsys):
    figures = json.loads(said(capsys, "--json"))
    assert (figures["total"], figures["by_language"], figures["by_day"]) == (None, {}, {})


@pytest.mark.parametrize("days", ["0", "-1", "401", "many"])
def test_impossible_days_are_refused(state: Path, capsys, days: str):
    with pytest.raises(SystemExit) as ended:
        main(["stats", "--days", days])
    assert ended.value.code == 2


def test_a_plot_without_the_png_suffix_is_refused(state: Path, capsys):
    assert main(["stats", "--plot", str(state / "days.svg")]) == 2
    assert "does not end in .png" in capsys.readouterr().err


def test_the_days_are_drawn(state: Path, capsys):
    pytest.importorskip("matplotlib")
    counted(TAKEN, PART, replace(REFUSED, shown_at=NOW - 86_400))
    path = state / "stats.png"
    said(capsys, "--plot", str(path))
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_bar_of_a_single_day_does_not_fill_the_chart(tmp_path: Path, monkeypatch):
    plot = pytest.importorskip("mercury_lsp.statistics.plot")
    axes = []
    monkeypatch.setattr(plot.Figure, "savefig", lambda figure, path, **options: axes.extend(figure.axes))
    plot.draw({"2026-11-22": Summary.of([TAKEN])}, tmp_path / "stats.png")
    first, last = axes[0].get_xlim()
    assert last - first > 7


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["stats", *arguments]) == 2
    return capsys.readouterr().err


def test_without_matplotlib_the_error_says_what_to_install(state: Path, capsys, monkeypatch):
    counted(TAKEN)
    monkeypatch.delattr("mercury_lsp.statistics.plot", raising=False)
    monkeypatch.delitem(sys.modules, "mercury_lsp.statistics.plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    assert install_command("plots") in refused(capsys, "--plot", str(state / "x.png"))


def test_a_plot_that_cannot_be_written_is_one_line(state: Path, capsys):
    pytest.importorskip("matplotlib")
    assert "nothing to draw" in refused(capsys, "--plot", str(state / "x.png"))
    counted(TAKEN)
    assert "cannot be written" in refused(capsys, "--plot", str(state / "nowhere" / "x.png"))


def test_the_server_does_not_load_matplotlib():
    loaded = "import sys, mercury_lsp.server.routes, mercury_lsp.commands.stats; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True).stdout == "False\n"


def test_a_file_that_cannot_be_read_is_one_line(state: Path, capsys):
    counted(TAKEN)
    store.default_path().write_bytes(b"not a database, but of some length " * 100)
    said = refused(capsys)
    assert "sets it aside" in said and said.count("\n") == 1


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
