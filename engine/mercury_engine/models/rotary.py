"""Rotary frequencies that a checkpoint scales, as Llama 3.1 and later do for long texts."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mercury_engine.errors import ModelError


def factors_of(config: Mapping[str, Any], width: int, base: float) -> tuple[float, ...]:
    """Divisors of the frequencies [width / 2] that a config.json asks for; empty for plain ones. Raises ModelError.

    The formula is `_compute_llama3_parameters` of transformers.
    """
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    if kind == "default":
        return ()
    if kind != "llama3":
        raise ModelError(f"rotary angles of kind {kind!r} are not supported; choose another model")
    factor, low, high = (float(scaling[name]) for name in ("factor", "low_freq_factor", "high_freq_factor"))
    turns = scaling["original_max_position_embeddings"] * base ** (-np.arange(0, width, 2) / width) / (2 * math.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return tuple((1 / ((1 - smooth) / factor + smooth)).tolist())
