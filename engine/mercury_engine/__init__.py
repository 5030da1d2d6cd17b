"""Mercury's engine: a diffusion language model that fills gaps in source text."""

from mercury_engine.errors import (
    Cancelled,
    MercuryError,
    ModelCorrupt,
    ModelError,
    ModelNotFound,
    RequestError,
)
from mercury_engine.requests import Fill, FillRequest, SlotView

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
