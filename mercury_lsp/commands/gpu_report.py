"""The findings of `mercury-lsp doctor --gpu`: whether a GPU writes the CPU's texts, and how fast."""

import json
import platform
import statistics
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

from mercury_engine.api import FillRequest, RewriteRequest
from mercury_engine.errors import MercuryError
from mercury_engine.models import gpu
from mercury_kernels.installation import version_of

from mercury_lsp import __version__
from mercury_lsp.commands.try_ import bundled_folder, examples
from mercury_lsp.engine_host.loading import filled, rewritten

if TYPE_CHECKING:
    from mercury_engine.device.torch_network import TorchNetwork
    from mercury_engine.engine import Engine

REPORT = Path("mercury-gpu.json")
"""File that `doctor --gpu` writes into the current folder."""

DIFFUSION_MODEL = "mercury-135m-diffusion"

FILLS, QUICK_FILLS = 20, 5

SURE = 0.5
"""Least probability of the fills that the quick check compares: rounding may change a token of an unsure fill."""

REWRITE = RewriteRequest('def greet(name):\n    return "hello"\n', path="greet.py", language="python", cursor=33)
"""The rewrite that both devices make."""

LETTERS = 3
"""Characters of a line before the gap."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Fills of one model on both devices."""

    compared: int
    same: int
    gpu_ms: float
    cpu_ms: float
    """Medians."""
    differing: Sequence[tuple[str, str]]
    """The GPU's text and the CPU's."""


def surroundings() -> dict[str, Any]:
    """The card, its driver, the versions, and what Triton needs to compile. Needs torch with CUDA."""
    import torch

    free, total = torch.cuda.mem_get_info()
    return {
        "mercury": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": version_of("triton"),
        "card": torch.cuda.get_device_name(),
        "capability": list(torch.cuda.get_device_capability()),
        "driver": gpu.driver(),
        "free_mb": free >> 20,
        "total_mb": total >> 20,
        "compiler": next(filter(None, map(which, ("cc", "gcc", "clang"))), None),
        "python_h": Path(sysconfig.get_paths()["include"], "Python.h").is_file(),
    }


def places(count: int) -> list[FillRequest]:
    """Gaps from a line's first letters to its end, spread over the examples."""
    found = []
    for sample in examples(bundled_folder()):
        text, start = sample.before + sample.after, 0
        for line in text.splitlines(keepends=True):
            cut = start + len(line) - len(line.lstrip()) + LETTERS
            end = start + len(line.rstrip("\n"))
            if start and end - cut > LETTERS:
                found.append(FillRequest(text[:cut], suffix=(text[end:],), max_slots=16))
            start += len(line)
    return found[:: max(1, len(found) // count)][:count]


def compared(on_gpu: "Engine", on_cpu: "Engine", requests: Sequence[FillRequest]) -> Compared:
    """Both fill each gap twice; the second run, with the context already read, is timed."""
    texts, times = [], list[tuple[float, float]]()
    for request in requests:
        (one, other), again = ([filled(engine, request) for engine in (on_gpu, on_cpu)] for _ in range(2))
        texts.append((one.text, other.text))
        times.append((again[0].elapsed, again[1].elapsed))
    gpu_ms, cpu_ms = (round(1e3 * statistics.median(each), 2) for each in zip(*times, strict=True))
    differing = [(one, other) for one, other in texts if one != other]
    return Compared(len(texts), len(texts) - len(differing), gpu_ms, cpu_ms, differing)


def why_not_trusted(model: str | None) -> str:
    """Why the quick check rejects the GPU for a model; empty if it does not."""
    try:
        on_gpu, on_cpu = both(model)
        if wrong := _wrong_kernels(on_gpu):
            return wrong
        sure = (each for each in places(FILLS) if filled(on_cpu, each).confidence >= SURE)
        found = compared(on_gpu, on_cpu, list(islice(sure, QUICK_FILLS)))
    except MercuryError as error:
        return str(error)
    if found.differing:
        return f"it writes {found.differing[0][0]!r} where the CPU writes {found.differing[0][1]!r}"
    if found.gpu_ms > found.cpu_ms:
        return f"the CPU is faster: {found.cpu_ms:.1f} ms a fill, {found.gpu_ms:.1f} on the GPU"
    return ""


def both(model: str | None) -> tuple["Engine", "Engine"]:
    """The model on the GPU and on the CPU. Raises ModelError, RequestError and DeviceError."""
    from mercury_engine.engine import Engine  # a slow import

    return Engine.load(model, device="cuda"), Engine.load(model, device="cpu")


def _wrong_kernels(engine: "Engine") -> str:
    from mercury_engine.device.check import wrong_kernels

    return "; ".join(f"kernel {name}: {how}" for name, how in wrong_kernels(_network(engine).decoder).items())


def report(model: str | None) -> Iterator[tuple[str, str, str | None]]:
    """Run the checks and yield the name, value and fix of each; the file REPORT gets all of them."""
    from mercury_engine.device.check import step_times

    found: dict[str, Any] = surroundings()
    yield "card", ", ".join(f"{name} {value}" for name, value in found.items() if name != "mercury"), _fix(found)
    for kind, name in (("causal", model), ("masked", DIFFUSION_MODEL)):
        on_gpu, on_cpu = both(name)
        wrong = _wrong_kernels(on_gpu)
        kernels = found[f"kernels {kind}"] = wrong or "equal their twins"
        yield "kernels", kernels, "send us the report" if wrong else None
        held = _network(on_gpu).decoder
        bits = 8 if held.has_codes else 8 * held.embedding.itemsize
        found[f"weights {kind}"] = {"bits": bits, "bytes": held.weight_bytes}
        yield "weights", f"{bits} bits each in the layers, {held.weight_bytes / 1e6:,.1f} MB in all", None
        steps = found[f"steps {kind}"] = [each.as_json() for each in step_times(_network(on_gpu))]
        slowest = max((each["times_the_floor"] for each in steps), default=0)
        yield "steps", f"{len(steps)} captured, at most {slowest} times what the card's bandwidth allows", None
        fills = compared(on_gpu, on_cpu, places(FILLS))
        found[f"fills {kind}"] = asdict(fills)
        equal = f"{fills.same} of {fills.compared} texts equal the CPU's"
        yield f"{kind} fills", f"{equal}, {fills.gpu_ms:.1f} ms a fill, {fills.cpu_ms:.1f} on the CPU", None
        if on_gpu.edit_format is not None:
            one, other = found["rewrite"] = [rewritten(each, REWRITE).text for each in (on_gpu, on_cpu)]
            yield "rewrite", "the CPU's text" if one == other else f"{one!r}, on the CPU {other!r}", None
    REPORT.write_text(json.dumps(found, indent=1) + "\n")
    yield "report", f"written to {REPORT}", None


def _fix(found: dict[str, Any]) -> str | None:
    """How to install what Triton lacks to compile kernels; None if it lacks nothing."""
    if found["triton"] is None:
        return "pip install triton"
    if found["compiler"] is None:
        return "install a C compiler (apt install gcc)"
    return None if found["python_h"] else "install Python's headers (apt install python3-dev)"


def _network(engine: "Engine") -> "TorchNetwork":
    from mercury_engine.device.torch_network import TorchNetwork

    assert isinstance(engine.reader, TorchNetwork)
    return engine.reader
