"""Plots the statistics by day."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, datestr2num
from matplotlib.figure import Figure

from mercury_lsp.statistics.summary import Summary

LEAST_DAYS = 7
"""Days that the axis spans at least, so that the bar of a single day does not fill the chart."""


def draw(days: Mapping[str, Summary], path: Path) -> None:
    """Write a PNG with three charts: suggestions, characters saved, latency. Raises OSError."""
    figure = Figure(figsize=(8, 8), layout="constrained")
    counts, saved, latency = figure.subplots(3, sharex=True)
    when = [float(datestr2num(day)) for day in days]
    _suggestions(counts, when, list(days.values()))
    saved.bar(when, [each.characters_saved for each in days.values()], color="tab:green", label="saved")
    saved.bar(when, [each.characters_kept for each in days.values()], 0.5, color="darkgreen", label="still kept")
    saved.set_ylabel("characters")
    latency.plot(when, [each.latency_ms_p50 for each in days.values()], "o-", label="p50")
    latency.plot(when, [each.latency_ms_p95 for each in days.values()], "o-", label="p95")
    latency.set(ylabel="latency (ms)", ylim=(0, None))
    for axes in (counts, saved, latency):
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
        axes.legend()
    latency.set_xlim(min(when[0], when[-1] - LEAST_DAYS + 1) - 0.6, when[-1] + 0.6)
    locator = AutoDateLocator(minticks=1)
    latency.xaxis.set_major_locator(locator)
    latency.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    figure.savefig(path, format="png")


def _suggestions(axes: Axes, when: list[float], days: list[Summary]) -> None:
    """Draw bars of shown suggestions, and within them the accepted ones."""
    axes.bar(when, [each.shown for each in days], color="lightgrey", label="shown")
    axes.bar(when, [each.accepted for each in days], color="tab:blue", label="accepted")
    bottom = [each.accepted for each in days]
    axes.bar(when, [each.partly for each in days], bottom=bottom, color="lightblue", label="partly accepted")
    axes.set_ylabel("suggestions")
