"""Plot a run: kernels with their floors."""

from pathlib import Path
from typing import Any


def plot_results(result: dict[str, Any], path: Path) -> None:
    """Write the PNG; needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 6), layout="constrained")
    _kernels(axes, result)
    figure.suptitle(f"{result['machine']['device']}, {result['machine']['date']}")
    figure.savefig(path, dpi=110)


def _kernels(axes: Any, result: dict[str, Any]) -> None:
    """The share of its byte or operation floor that each kernel reaches."""
    rows = [row for row in result["kernels"] if "floor_share" in row and row["floor_ms"]]
    names = [f"{row['kernel']} ({row['model'].split()[0]})" for row in rows]
    axes.barh(range(len(rows)), [row["floor_share"] for row in rows])
    axes.set_yticks(range(len(rows)), names, fontsize=6)
    axes.invert_yaxis()
    axes.set_title("kernels: floor / measured time", fontsize=9)
