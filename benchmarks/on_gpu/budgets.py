"""The targets of a run: limits in milliseconds, and the least speedup of a step over the compiled model's."""

from dataclasses import asdict, dataclass
from typing import Any

from on_gpu.shapes import MAIN_POINT, MODELS, Point

BUNDLED, HALF, SEVEN = (model.name for model in MODELS)

MIN_SPEEDUP = 1.5
"""Least speedup of our step over a step of the plain model compiled with CUDA graphs."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limit, in milliseconds, of one of our figures at one point of one model."""

    what: str
    model: str
    point: Point
    work: str
    figure: str
    most: float


BUDGETS = (
    Budget("step", BUNDLED, MAIN_POINT, "step", "p50_ms", 0.2),
    Budget("fill of four steps, median", BUNDLED, MAIN_POINT, "fill", "p50_ms", 0.8),
    Budget("fill of four steps, one in a hundred", BUNDLED, MAIN_POINT, "fill", "p99_ms", 1.0),
    Budget("fills of 64 sessions", BUNDLED, Point(MAIN_POINT.slots, MAIN_POINT.context, 64), "fill", "p95_ms", 5.0),
    Budget("step", HALF, MAIN_POINT, "step", "p50_ms", 0.45),
    Budget("step", SEVEN, MAIN_POINT, "step", "p50_ms", 4.2),
)


def held(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Every budget with its measured value and whether it is met; None if the run skipped it."""
    rows = []
    for budget in BUDGETS:
        found = _figure(result, budget.model, budget.point, "ours", budget.work, budget.figure)
        row = {"what": budget.what, "model": budget.model, "most": budget.most, "measured": found}
        rows.append(row | {"met": None if found is None else found <= budget.most})
    for model in (BUNDLED, HALF, SEVEN):
        ours, other = (_figure(result, model, MAIN_POINT, way, "step", "p50_ms") for way in ("ours", "compiled"))
        times = other / ours if ours and other else None
        row = {"what": "times faster a step than compiled", "model": model, "least": MIN_SPEEDUP, "measured": times}
        rows.append(row | {"met": None if times is None else times >= MIN_SPEEDUP})
    return rows


def _figure(result: dict[str, Any], model: str, point: Point, way: str, work: str, figure: str) -> float | None:
    points = (p for m in result["models"] if m["model"] == model for p in m["points"] if p["point"] == asdict(point))
    found = next(points, {}).get(way, {})
    return found.get(work, {}).get(figure)
