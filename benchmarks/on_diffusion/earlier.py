"""Fills of the bundled masked model beside those of an earlier checkout, in turns.

As a script this file is what either of them runs: it answers requests, one a line, and needs nothing but the engine.
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

MODEL = "mercury-135m-diffusion"

ROUNDS = 1000
"""Samples of the fills, for the interval."""

CONTEXT = "far", "suffix"


def serve(threads: int) -> None:
    from mercury_engine.api import FillRequest
    from mercury_lab.engine import Engine

    engine = Engine.load(MODEL, device="cpu", threads=threads)
    for line in sys.stdin:
        given = json.loads(line)
        request = FillRequest(**given | {name: tuple(given[name]) for name in CONTEXT})
        processor, started = time.process_time(), time.perf_counter()
        fill = engine.fill(request)
        taken = {"ms": 1e3 * (time.perf_counter() - started), "processor_ms": 1e3 * (time.process_time() - processor)}
        sys.stdout.write(json.dumps(taken | {"text": fill.text, "steps": fill.steps}) + "\n")
        sys.stdout.flush()


def compared(checkout: Path, requests: Sequence[Any], threads: int) -> dict[str, Any]:
    """Medians of both, and the ratio of their sums with its 95 % interval."""
    commit = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    pythons = str(checkout / ".venv" / "bin" / "python"), sys.executable
    both = [
        subprocess.Popen([python, "-P", __file__, str(threads)], stdin=-1, stdout=-1, text=True) for python in pythons
    ]
    found: list[list[dict[str, Any]]] = [[], []]
    for number, request in enumerate(requests):
        line = json.dumps({name: getattr(request, name) for name in ("near", *CONTEXT, "max_slots", "effort")})
        for which in (0, 1) if number % 2 else (1, 0):
            found[which].append(_asked(both[which], line))
    for each in both:
        each.communicate()
    return {"commit": commit.stdout.strip(), "fills": len(requests)} | _figures(*found)


def _asked(process: "subprocess.Popen[str]", line: str) -> Any:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def _figures(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> dict[str, Any]:
    ratios = dict[str, Any]()
    for unit in ("ms", "processor_ms"):
        pairs = [(each[unit], other[unit]) for each, other in zip(now, before, strict=True)]
        draw = random.Random(0)
        drawn = sorted(_ratio(draw.choices(pairs, k=len(pairs))) for _ in range(ROUNDS))
        ratios[f"{unit}_ratio"] = _ratio(pairs)
        ratios[f"{unit}_ratio_interval"] = [drawn[ROUNDS // 40], drawn[-ROUNDS // 40]]
    same = sum(each["text"] == other["text"] for each, other in zip(now, before, strict=True))
    medians = {"before_ms": median(each["ms"] for each in before), "ms": median(each["ms"] for each in now)}
    return {"same_text": same} | medians | ratios


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(now for now, _ in pairs) / sum(before for _, before in pairs)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
