"""The targets of a run: milliseconds of a pass that decides, of one request, by model."""

from typing import Any

from on_gpu.shapes import MODELS

BUDGETS = dict(zip((model.name for model in MODELS), (0.45, 0.45, 4.2), strict=True))


def held(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Every budget with its measured value and whether it is met; None if the run skipped it."""
    passes = {row["model"]: row.get("pass_ms") for row in result["passes"]}
    return [
        {"model": model, "most": most, "measured": (found := passes.get(model))}
        | {"met": None if found is None else found <= most}
        for model, most in BUDGETS.items()
    ]
