"""What is known about an installed model: where it came from, and how fast it is on this machine."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from mercury_lsp.plain_data import InvalidData, structured


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
    """The record in a file, without a measurement that another version made; None if there is none to read."""
    try:
        raw = json.loads(path.read_text("utf-8"))
        try:
            return structured(raw, ModelRecord)
        except InvalidData:
            return structured({**raw, "measured": None}, ModelRecord)
    except (OSError, ValueError, TypeError):
        return None
