"""Steps and fills on a GPU: `python benchmarks/gpu.py [--model NAME] [--gaps 40] [--out DIR]`.

Times every captured step and holds it against its floor, the bytes of the weights over the bandwidth of a large copy
measured on this card; then fills real gaps and types a key into each, and compares the texts with the CPU's in
float32. `--device cpu` runs all of it without graphs: its times mean nothing.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import torch
from mercury_engine.device.step import DeviceStep
from mercury_engine.device.torch_network import TorchNetwork
from mercury_kernels import ops
from mercury_lab.engine import Engine
from mercury_lab.evaluation.gaps import GAP_KINDS, gaps

HERE = Path(__file__).resolve().parent

HELD_OUT = HERE.parent / "tests" / "data" / "held_out"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="another model than the bundled one")
    parser.add_argument("--gaps", type=int, default=40)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder for gpu.json")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("no CUDA device: nothing measured (try --device cpu)")
        return 0
    with torch.no_grad():
        found = {"date": date.today().isoformat(), "machine": machine(options.device), "model": options.model}
        found |= measured(options)
    options.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1)
    (options.out / "gpu.json").write_text(text + "\n")
    print(text)
    return 0


def machine(device: str) -> dict[str, str]:
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU, the times mean nothing"
    return {"device": name, "torch": torch.__version__, "kernels": ops.availability()}


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """The steps of the model in its own precision, and fills in float32 beside the CPU's."""
    engine = loaded(options.model, options.device, None if options.device == "cuda" else torch.float32)
    bandwidth = bytes_per_second(engine.reader.decoder.device)
    steps = timed_steps(engine.reader, bandwidth)
    keys = [key for request, typed in places(options.gaps) for key in typed_into(engine, request, typed)]
    exact, expected = loaded(options.model, options.device, torch.float32), Engine.load(options.model, device="cpu")
    texts = [(exact.fill(each).text, expected.fill(each).text) for each, _ in places(options.gaps)]
    same = sum(found == other for found, other in texts)
    return {
        "gigabytes_per_second": round(bandwidth / 1e9, 1),
        "steps": steps,
        "key_ms": round(statistics.median(keys), 3),
        "fills": {"compared": len(texts), "same": same},
    }


def loaded(model: str | None, device: str, dtype: torch.dtype | None) -> Engine:
    engine = Engine.load(model, device=device, dtype=dtype, backend="torch")
    if device == "cpu":
        engine.reader._step = DeviceStep(engine.reader.decoder)
        engine.reader._step.prepare()
    return engine


def timed_steps(network: TorchNetwork, bandwidth: float) -> list[dict[str, Any]]:
    step, decoder = network._step, network.decoder
    assert step is not None, "no room for graphs"
    size = sum(each.nbytes for each in decoder.parameters()) - (decoder.head is not None) * decoder.embedding.nbytes
    floor = 1e3 * size / bandwidth
    rows = []
    for shape in step.shapes:
        found = milliseconds(lambda shape=shape: step.replay(shape), decoder.device)
        rows.append(shape._asdict() | {"ms": round(found, 4), "floor_ms": round(floor, 4)})
    return rows


def typed_into(engine: Engine, request: Any, typed: str) -> list[float]:
    """Milliseconds of each of two keys behind a warm context."""
    engine.fill(request)
    times = []
    for count in (1, 2)[: len(typed)]:
        began = time.perf_counter()
        engine.fill(replace(request, near=request.near + typed[:count]))
        times.append(1e3 * (time.perf_counter() - began))
    return times


def places(count: int) -> list[tuple[Any, str]]:
    found = gaps(HELD_OUT, -(-count // len(GAP_KINDS)), 0, GAP_KINDS)
    return [(replace(each.request, max_slots=16), each.truth) for each in found][:count]


def bytes_per_second(device: torch.device) -> float:
    """Of a large copy, read and written."""
    source = torch.zeros(1 << (30 if device.type == "cuda" else 20), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * len(source) / (1e-3 * milliseconds(lambda: target.copy_(source), device))


def milliseconds(work: Callable[[], object], device: torch.device, runs: int = 20) -> float:
    """The median, until the device is done."""
    times = []
    for _ in range(runs if device.type == "cuda" else 2):
        began = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - began))
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
