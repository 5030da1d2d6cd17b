"""Mercury's engine: a diffusion language model that fills gaps in source text."""

from mercury_engine.api import Fill, FillRequest, SlotView
from mercury_engine.errors import (
    Cancelled,
    MercuryError,
    ModelCorrupt,
    ModelError,
    ModelNotFound,
    RequestError,
)

__all__ = [
    "Cancelled",
    "Fill",
    "FillRequest",
    "MercuryError",
    "ModelCorrupt",
    "ModelError",
    "ModelNotFound",
    "RequestError",
    "SlotView",
]
