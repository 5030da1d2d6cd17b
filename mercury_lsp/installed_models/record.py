"""What is known about an installed model: where it came from, and how fast it is on this machine."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Measurement:
    """A model's speed and memory, as measured on this machine."""

    pass_ms: float
    """Milliseconds of a forward pass, with its share of the work around it."""
    answer_ms: float
    """Milliseconds of a fill after a key."""
    memory_mb: float | None
    """Resident memory of a process that has filled a few gaps; None if the system does not report it."""
    day: str
    """When it was measured, as in 2026-11-24."""


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """Kept in NAME.json beside the model's folder, which may be the user's own and is left as it is."""

    source: str
    licence: str | None = None
    measured: Measurement | None = None

    def to_json(self) -> str:
        """The record as the text of its file."""
        return json.dumps(asdict(self), indent=2) + "\n"


def read(path: Path) -> ModelRecord | None:
    """The record in a file, of another version too; None if there is none that can be read."""
    try:
        raw = json.loads(path.read_text("utf-8"))
        return ModelRecord(raw["source"], raw.get("licence"), _measurement(raw.get("measured")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _measurement(raw: Any) -> Measurement | None:
    try:
        return Measurement(*(raw[each.name] for each in fields(Measurement)))
    except (KeyError, TypeError):
        return None
