"""Plot the suites' figures as PNG."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

PlotRow = Mapping[str, float | None]


def _axes(x: str, y: str) -> tuple[Figure, Axes]:
    """An empty figure whose vertical axis is a share."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y, ylim=(0, 1.02))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    return figure, axes


def written_by_accepting(shares: Mapping[str, Sequence[float | None]], path: Path) -> None:
    """Two bars for every filler: over all files and over Python."""
    figure, axes = _axes("", "share of characters written by accepting")
    places = range(len(shares))
    for number, label in enumerate(("all files", "Python")):
        heights = [values[number] or 0.0 for values in shares.values()]
        bars = axes.bar([place + 0.4 * number - 0.2 for place in places], heights, 0.38, label=label)
        axes.bar_label(bars, [f"{height:.0%}" for height in heights])
    axes.set_xticks(list(places), list(shares))
    axes.set_ylim(0, min(1.02, 0.1 + 1.2 * max((v or 0.0 for values in shares.values() for v in values), default=1)))
    axes.legend()
    figure.savefig(path)


def precision_against_shown(gates: Mapping[str, Sequence[PlotRow]], path: Path) -> None:
    """One line for every filler; every point is a gate."""
    figure, axes = _axes("share of requests with a suggestion", "precision of what is shown")
    for name, rows in gates.items():
        seen = [row for row in rows if row["precision"] is not None]
        axes.plot([row["shown"] or 0.0 for row in seen], [row["precision"] or 0.0 for row in seen], "o-", label=name)
        for row in seen:
            place = (row["shown"] or 0.0, row["precision"] or 0.0)
            axes.annotate(f"{row['gate']:g}", place, (0, 5), textcoords="offset points", fontsize=7, ha="center")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.legend()
    figure.savefig(path)


def quality_against_steps(by_kind: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """One line for every kind of span; "free" has no step limit."""
    figure, axes = _axes("limit of denoising steps", "exact match")
    for kind, by_steps in by_kind.items():
        axes.plot(list(by_steps), list(by_steps.values()), "o-", label=kind)
    axes.set_ylim(0, min(1.02, 0.05 + 1.2 * max((v for row in by_kind.values() for v in row.values()), default=1)))
    axes.legend()
    figure.savefig(path)


def reliability(curves: Mapping[str, Sequence[PlotRow]], path: Path) -> None:
    """Measured share of right suggestions against confidence; a calibrated model lies on the diagonal."""
    figure, axes = _axes("confidence", "share of suggestions with nothing wrong")
    axes.plot([0, 1], [0, 1], "--", color="grey", linewidth=1)
    for name, rows in curves.items():
        axes.plot([row["confidence"] or 0.0 for row in rows], [row["right"] or 0.0 for row in rows], "o-", label=name)
    axes.set_xlim(0, 1)
    axes.legend()
    figure.savefig(path)
