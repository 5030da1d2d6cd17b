"""Requests and answers of engines as JSON, for `/mercury/v1/answer`.

A request is `{"fill" | "rewrite": {...}, "steps": bool}`; the reply is lines: `{"step": [...]}` for each step
if it asked for them, then `{"answer": {...}}`, or `{"error": {"message"}}`. A GET describes the engine.
"""

from dataclasses import dataclass, field

from mercury_engine.api import Fill, FillRequest, InferenceEngine, Rewrite, RewriteRequest
from mercury_engine.utility import Utility

Request = FillRequest | RewriteRequest

Answer = Fill | Rewrite

PATH = "/mercury/v1/answer"

PROTOCOL = 2
"""Changes when a request or an answer no longer means the same."""


@dataclass(frozen=True, slots=True)
class About:
    """An engine as it describes itself."""

    name: str
    device: str = "remote"
    backend: str = "remote"
    edit_format: str | None = None
    utility: Utility = field(default_factory=Utility)
    protocol: int = PROTOCOL

    @classmethod
    def of(cls, engine: InferenceEngine, edit_format: str | None) -> "About":
        """`edit_format`: that of whichever model rewrites."""
        return cls(engine.name, engine.device, engine.backend, edit_format, engine.utility)
