"""Measure models on the C kernels: `python benchmarks/passes.py MODEL... [--rounds N] [--json] [--out FILE]`.

For each model, in a process of its own: seconds to load it, resident memory, and milliseconds of a pass of 1, 4 and 8
rows over 760 cached tokens of source text, layers and head apart. Rounds alternate between the models; on a busy
machine compare the least times.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from mercury_engine.errors import MercuryError, RequestError
from mercury_engine.loading import load_model
from mercury_engine.models.cpu import CpuNetwork
from mercury_engine.models.network import ForwardRequest
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import held_out_files
from on_all import options as options_of_all
from on_keys import editor
from rich.table import Table

CACHED, ROWS = 760, (1, 4, 8)

REPEATS = 40
"""Passes of each number of rows in a round."""


def main() -> int:
    parser = options_of_all.parser("passes", __doc__)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a folder, a GGUF file or a name")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each model (default 3)")
    parser.add_argument("--child", action="store_true", help="measure one model here, and print JSON")
    options_of_all.add_corpus(parser)
    options_of_all.add_threads(parser, 2)
    options = parser.parse_args()
    try:
        if options.child:
            print(json.dumps(measured(options.models[0], options.threads, options.corpus)))
            return 0
        runs = [(model, _child(model, options)) for _ in range(options.rounds) for model in options.models]
        record = {"threads": options.threads, "cached_tokens": CACHED} | options_of_all.circumstances()
        record["models"] = [summary(model, [run for name, run in runs if name == model]) for model in options.models]
        suite.deliver(record, table(record), options)
    except MercuryError as error:
        parser.exit(1, f"{error}\n")
    return 0


def _child(model: str, options: Any) -> dict[str, Any]:
    """A measurement in another process. Raises RequestError."""
    command = [sys.executable, __file__, model, "--child", "--threads", str(options.threads)]
    done = subprocess.run([*command, "--corpus", str(options.corpus)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RequestError(f"{model} was not measured: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measured(model: str, threads: int, corpus: Path) -> dict[str, Any]:
    """Seconds, megabytes, and milliseconds of every pass."""
    start = time.perf_counter()
    parts = load_model(model, "cpu", threads, None, "native")
    seconds, process = time.perf_counter() - start, os.getpid()
    loaded = editor.resident_mb(process)
    network = parts.reader
    assert isinstance(network, CpuNetwork)
    text = "".join(file.text for file in held_out_files(corpus)[:4])
    ids = np.array(parts.tokenizer.encode(text)[: CACHED + max(ROWS)])
    [(_, block)] = network.read_together([ForwardRequest(ids[:CACHED], [], 0)])
    side = network.rotated(block, 0)
    passes: dict[str, Any] = {}
    for rows in ROWS:
        request = ForwardRequest(ids[CACHED : CACHED + rows], [side], CACHED)
        passes[str(rows)] = [_timed(network, request) for _ in range(REPEATS)]
    return {"load_s": seconds, "loaded_mb": loaded, "used_mb": editor.resident_mb(process), "passes_ms": passes}


def _timed(network: CpuNetwork, request: ForwardRequest) -> tuple[float, float]:
    """Milliseconds of the layers and of the head with its softmax."""
    start = time.perf_counter()
    [(hidden, _)] = network.read_together([request])
    between = time.perf_counter()
    network.log_probabilities(hidden)
    return (between - start) * 1e3, (time.perf_counter() - between) * 1e3


def summary(model: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The least of seconds and milliseconds over all rounds, their medians, and the most memory."""
    passes = {}
    for rows in map(str, ROWS):
        layers, head = zip(*(pair for run in runs for pair in run["passes_ms"][rows]), strict=True)
        passes[rows] = {
            "layers_ms": round(min(layers), 2),
            "head_ms": round(min(head), 2),
            "median_ms": round(median(map(sum, zip(layers, head, strict=True))), 2),
        }
    return {
        "model": Path(model).name,
        "load_s": round(min(run["load_s"] for run in runs), 2),
        "loaded_mb": round(max(run["loaded_mb"] for run in runs)),
        "used_mb": round(max(run["used_mb"] for run in runs)),
        "passes": passes,
    }


def table(record: dict[str, Any]) -> Table:
    """A row for each model."""
    made = Table(title=f"{record['threads']} threads; milliseconds are layers + head, the least")
    for column in ("model", "load, s", "resident, MB", *(f"{rows} rows" for rows in ROWS)):
        made.add_column(column)
    for model in record["models"]:
        times = (f"{each['layers_ms']} + {each['head_ms']}" for each in model["passes"].values())
        made.add_row(model["model"], str(model["load_s"]), f"{model['loaded_mb']}, used {model['used_mb']}", *times)
    return made


if __name__ == "__main__":
    sys.exit(main())
