"""Draw `docs/soak.svg`: memory of daemon and relay over the keys typed, from what `make soak` recorded."""

import json
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "benchmarks" / "results"

RECORDS = {"soak.json": "an engine that answers at once", "soak-bundled.json": "the bundled model"}


def main() -> None:
    mpl.rcParams.update({"svg.hashsalt": "soak", "svg.fonttype": "none"})
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    axes = figure.subplots(1, 2, gridspec_kw={"width_ratios": [2, 1]})
    for (name, engine), plot in zip(RECORDS.items(), axes, strict=True):
        record = json.loads((RESULTS / name).read_text())
        for part in ("daemon", "relay"):
            plot.plot(record["keys"], record[f"{part}_mb"], label=part)
        plot.set(xlabel="keys", ylabel="resident MB", ylim=(0, None), xlim=(0, None), title=engine)
        plot.grid(alpha=0.3)
        plot.legend(loc="center right")
    figure.savefig(HERE / "soak.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
