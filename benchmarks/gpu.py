"""Kernels and fills on a GPU against floors: `python benchmarks/gpu.py [--minutes 4] [--out DIR]`.

Needs torch and triton, for real fills tokenizers and safetensors; neither pygls nor tree-sitter. Real code
is filled by the bundled model, in passes over pages and by the plain loop, and keys are timed. Elsewhere weights are
random, so the figures are about the machine: milliseconds of a kernel, and of a pass that decides.
What does not fit into the time is left out and listed. `--rehearse` runs all parts at tiny size on a CPU, kernels
in Triton's interpreter. `--host` measures only the host's work for a typed key; its passes take no time.
"""

import argparse
import json
import os
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "engine"), str(HERE.parent / "kernels")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=4.0, help="time limit; parts that do not fit are skipped (default 4)"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder for gpu.json")
    parser.add_argument("--rehearse", action="store_true", help="tiny, on the CPU, in the interpreter")
    parser.add_argument("--sweep", action="store_true", help="only: tile sizes for products of few rows")
    parser.add_argument(
        "--key", action="store_true", help="only: where a typed key's time goes, as a table and a trace"
    )
    parser.add_argument("--model", help="with --key: another model than the bundled one")
    parser.add_argument("--host", action="store_true", help="only: the host's time for a typed key; needs no GPU")
    parser.add_argument("--profile", action="store_true", help="with --host: print where it goes")
    parser.add_argument("--warm", type=int, metavar="MODEL", help="only: compile (used by the command itself)")
    options = parser.parse_args()
    if options.host:
        return host(options)
    if options.rehearse:
        os.environ["TRITON_INTERPRET"] = "1"
    import torch

    if not options.rehearse and not torch.cuda.is_available():
        print("no CUDA device: nothing measured (try --rehearse)")
        return 0
    if options.rehearse:
        torch.set_num_threads(1)
    run = Run(options)
    if options.warm is not None:
        run.warm(options.warm)
    elif options.sweep:
        run.sweep()
    elif options.key:
        run.key()
    else:
        run.all()
    return 0


def host(options: argparse.Namespace) -> int:
    """Measure what the host does for a typed key."""
    import torch
    from on_gpu.host import HostTime

    torch.set_num_threads(1)
    found = HostTime().measure(options.profile) | {"date": date.today().isoformat()}
    text = json.dumps(found, indent=1)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "gpu-host.json").write_text(text + "\n")
    print(text)
    return 0


class Run:
    """One run: its parts in order of importance; results are written after each."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch
        from on_gpu import clock, shapes

        self.end = time.monotonic() + 60 * options.minutes
        self.options, self.tiny = options, options.rehearse
        self.device = torch.device("cpu" if self.tiny else "cuda")
        self.dtype = torch.float32 if self.tiny else torch.bfloat16
        self.clock = clock.Clock(self.device)
        self.seconds = 0.02 if self.tiny else 0.4
        self.models = shapes.TINY_MODELS if self.tiny else shapes.MODELS
        self.result: dict[str, Any] = {"machine": self._machine(), "kernels": [], "passes": [], "left_out": []}
        self.limits: dict[str, float] = {}

    def all(self) -> None:
        """The whole benchmark."""
        from mercury_kernels import launch
        from on_gpu import budgets

        self.compile_ahead()
        self.kernels()
        self.passes()
        self.real_fills()
        self.result["fallbacks"], self.result["budgets"] = dict(launch.broken), budgets.held(self.result)
        self.table()
        self.write()

    def compile_ahead(self) -> None:
        """Fill the compilers' caches in parallel; a rehearsal does it without effect."""
        from on_gpu import clock, warm

        began = time.monotonic()
        if self.tiny:
            self.warm(0)
            self.result["compiled_ahead"] = {"of": 1, "done": 1}
        else:
            started = warm.start(Path(__file__), len(self.models))
            done = warm.wait(started, 0.35 * 60 * self.options.minutes)
            self.result["compiled_ahead"] = {"of": len(started), "done": done, "seconds": time.monotonic() - began}
        self.limits = self.result["ceilings"] = clock.ceilings(self.clock, self.tiny)

    def warm(self, number: int) -> None:
        """Compile one model's kernels without measuring them."""
        from on_gpu import warm

        warm.warm(self.models[number], self.dtype, self.clock)

    def left(self) -> float:
        """Seconds."""
        return self.end - time.monotonic()

    def kernels(self) -> None:
        """Check and time every kernel at the shapes of every model, and compare it with its floor."""
        from on_gpu.clock import attempt
        from on_gpu.kernels import Cases, measure
        from on_gpu.shapes import CONTEXT, ROWS

        for number, model in enumerate(self.models):
            cases = Cases(model, ROWS, CONTEXT, self.dtype, self.device)
            for case in cases.all():
                used = 1 - self.left() / (60 * self.options.minutes)
                if used > 0.45 + 0.05 * number and not self.tiny:
                    self.result["left_out"].append(f"kernel {case.name}, {model.name}")
                    continue
                row = attempt(lambda case=case: measure(case, self.clock, self.limits, self.seconds / 4))
                self.result["kernels"].append({"kernel": case.name, "model": model.name, **row})
        self.write()

    def passes(self) -> None:
        """Time a pass of every model that decides about a few rows."""
        from on_gpu import passes, shapes
        from on_gpu.clock import attempt

        for model in self.models:
            if self.left() < 10 and not self.tiny:
                self.result["left_out"].append(f"passes of {model.name}")
                continue
            made = shapes.network(model, self.dtype, self.device)
            row = attempt(lambda made=made: passes.measure(made, self.clock, self.seconds))
            self.result["passes"].append({"model": model.name, **row})
            self.write()

    def real_fills(self) -> None:
        """Run the bundled model through the engine on real code."""
        from on_gpu.clock import attempt

        seconds = 50.0 if self.tiny else min(50.0, 0.5 * self.left())
        if seconds < 5 and not self.tiny:
            self.result["left_out"].append("real fills")
            return
        self.result["real_fills"] = attempt(lambda: self._real_fills(seconds))
        self.write()

    def key(self) -> None:
        """Trace typed keys of the bundled model as shipped."""
        from on_gpu.key_trace import trace
        from on_gpu.real_fills import RealFills

        real = RealFills(self.clock, 1 if self.tiny else 20, 30, self.tiny, self.options.model)
        self.options.out.mkdir(parents=True, exist_ok=True)
        print(trace(real, self.options.out))

    def _real_fills(self, seconds: float) -> dict[str, Any]:
        from on_gpu.clock import attempt
        from on_gpu.real_fills import RealFills

        real = RealFills(self.clock, 1 if self.tiny else 200, seconds, self.tiny)
        return {"agreement": attempt(real.agreement), "keys": attempt(real.keys)}

    def sweep(self) -> None:
        """Times of `linear` for tile sizes around the default, at the shapes of the first model."""
        from mercury_kernels import linear
        from on_gpu import clock
        from on_gpu.clock import attempt
        from on_gpu.kernels import Cases, measure
        from on_gpu.shapes import CONTEXT, ROWS

        self.limits = self.result["ceilings"] = clock.ceilings(self.clock, self.tiny)
        model = self.models[0]
        cases = Cases(model, ROWS, CONTEXT, self.dtype, self.device)
        chosen = linear.tiles
        for case in cases.all():
            if not case.name.startswith("linear") or "W8" in case.name:
                continue
            for tile in (None, *((64, n, k, s) for n in (16, 32, 64) for k in (32, 64, 128) for s in (1, 2, 4, 8))):
                if self.left() < 5:
                    break
                linear.tiles = chosen if tile is None else lambda *_, tile=tile: (ROWS, *tile[1:])
                row = attempt(lambda case=case: measure(case, self.clock, self.limits, self.seconds / 8))
                self.result["kernels"].append({"kernel": case.name, "model": model.name, "tile": tile, **row})
        linear.tiles = chosen
        for row in sorted(self.result["kernels"], key=lambda r: (r["kernel"], r.get("p50_ms", 1e9))):
            print(row["kernel"], row["tile"], f"{row.get('p50_ms', float('nan')):.4f} ms")
        self.write()

    def _machine(self) -> dict[str, str]:
        import torch
        import triton
        from mercury_kernels import ops

        name = "CPU, rehearsal: the figures mean nothing" if self.tiny else torch.cuda.get_device_name()
        versions = {"torch": torch.__version__, "triton": triton.__version__, "date": date.today().isoformat()}
        return {"device": name, "kernels": ops.availability(), **versions}

    def table(self) -> None:
        """Print the most important figures."""
        for row in self.result["kernels"]:
            print(
                f"{row['model'][:20]:20} {row['kernel'][:40]:40}"
                + (
                    f" {row['p50_ms']:9.4f} ms, floor {row['floor_ms']:8.4f}, error {row['error']:.1e}"
                    if "p50_ms" in row
                    else f" {row['failed']}"
                )
            )
        for row in self.result["passes"]:
            print("pass:", row)
        for row in self.result["budgets"]:
            verdict = {None: "not measured", True: "met", False: "MISSED"}[row["met"]]
            print(f"{row['model']:20} a pass at most {row['most']} ms: {row['measured']} {verdict}")
        print("real fills:", json.dumps(self.result.get("real_fills", "left out")))
        print(f"left out for time: {len(self.result['left_out'])}; kernels off: {self.result['fallbacks'] or 'none'}")

    def write(self) -> None:
        self.options.out.mkdir(parents=True, exist_ok=True)
        name = ("sweep" if self.options.sweep else "gpu") + ("-rehearsal" if self.tiny else "")
        (self.options.out / f"{name}.json").write_text(json.dumps(self.result, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
