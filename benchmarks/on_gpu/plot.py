"""Plot a run: fills with their baselines, and kernels with their floors."""

from pathlib import Path
from typing import Any

WAYS = ("ours", "compiled", "eager", "left_to_right")


def plot_results(result: dict[str, Any], path: Path) -> None:
    """Write the PNG; needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(15, 6), layout="constrained")
    _fills(left, result)
    _kernels(right, result)
    figure.suptitle(f"{result['machine']['device']}, {result['machine']['date']}")
    figure.savefig(path, dpi=110)


def _fills(axes: Any, result: dict[str, Any]) -> None:
    """Steps of every way at each model's main point."""
    models = [m for m in result["models"] if m["points"]]
    for offset, way in enumerate(WAYS):
        times = [((m["points"][0].get(way) or {}).get("step") or {}).get("p50_ms") for m in models]
        at = [i + 0.2 * offset for i, t in enumerate(times) if t]
        bars = axes.bar(at, [t for t in times if t], 0.2, label=way.replace("_", " ") + " (one token)" * (offset == 3))
        axes.bar_label(bars, fmt="%.3g", fontsize=7)
    axes.set_yscale("log")
    axes.set_xticks([i + 0.3 for i in range(len(models))], [m["model"] for m in models])
    point = models[0]["points"][0]["point"] if models else {}
    axes.set_title(f"one step, ms (p50): {point}", fontsize=9)
    axes.legend()


def _kernels(axes: Any, result: dict[str, Any]) -> None:
    """The share of its byte or operation floor that each kernel reaches."""
    rows = [row for row in result["kernels"] if "floor_share" in row and row["floor_ms"]]
    names = [f"{row['kernel']} ({row['model'].split()[0]})" for row in rows]
    axes.barh(range(len(rows)), [row["floor_share"] for row in rows])
    axes.set_yticks(range(len(rows)), names, fontsize=6)
    axes.invert_yaxis()
    axes.set_title("kernels: floor / measured time", fontsize=9)
