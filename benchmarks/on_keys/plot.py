"""Plot the figures as PNG."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def latencies(parts: Mapping[str, Sequence[float]], path: Path) -> None:
    """The share of keystrokes that were answered within a time, for each part of the latency."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name, values in parts.items():
        if values:
            axes.ecdf(values, label=name)
    axes.set(xscale="symlog", xlabel="ms", ylabel="share of keystrokes", xlim=(0, None), ylim=(0, 1.02))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)


def ratios(record: Mapping[str, Any], names: Sequence[str], path: Path) -> None:
    """A bar for every peer with its time over ours; none if it could not run."""
    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(list(names), [record[name] or 0.0 for name in names])
    axes.bar_label(bars, ["not run" if record[name] is None else f"{record[name]:.2f}" for name in names], padding=3)
    axes.axvline(1, color="grey", linewidth=1)
    axes.set(xlabel=f"time over ours, fill of {record['tokens']} tokens")
    axes.margins(x=0.15)
    figure.savefig(path)
