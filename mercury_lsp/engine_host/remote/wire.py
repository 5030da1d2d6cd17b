"""Requests and answers of engines as JSON, for `/mercury/v1/answer`.

A request is `{"fill" | "rewrite": {...}, "steps": bool}`; the reply is lines: `{"step": [...]}` for each step
if it asked for them, then `{"answer": {...}}`, or `{"error": {"message"}}`. A GET describes the engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cattrs
from mercury_engine.api import (
    Answer,
    Fill,
    FillRequest,
    InferenceEngine,
    Request,
    Rewrite,
    RewriteRequest,
    SlotView,
)
from mercury_engine.utility import Utility

PATH = "/mercury/v1/answer"

PROTOCOL = 2
"""Changes when a request or an answer no longer means the same."""

KINDS: dict[str, tuple[type[Request], type[Answer]]] = {
    "fill": (FillRequest, Fill),
    "rewrite": (RewriteRequest, Rewrite),
}

_converter = cattrs.Converter()


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


def plain(value: Any) -> Any:
    """A dataclass, or a sequence of them, as JSON's types."""
    return _converter.unstructure(value)


def body_of(request: Request, steps: bool) -> dict[str, Any]:
    """What is sent for a request."""
    kind = next(kind for kind, (asked, _) in KINDS.items() if isinstance(request, asked))
    return {kind: plain(request), "steps": steps}


def about(body: Any) -> About:
    """The description. Raises ValueError."""
    return _structured(body, About)


def answer(body: Any, request: Request) -> Answer:
    """The answer to this request. Raises ValueError."""
    return _structured(body, next(found for asked, found in KINDS.values() if isinstance(request, asked)))


def slots(body: Any) -> tuple[SlotView, ...]:
    """A step's slots. Raises ValueError."""
    return _structured(body, tuple[SlotView, ...])


def _structured(body: Any, kind: Any) -> Any:
    try:
        return _converter.structure(body, kind)
    except (cattrs.BaseValidationError, TypeError, ArithmeticError, ValueError, KeyError, AttributeError) as error:
        said = "an object" if isinstance(body, Mapping) else type(body).__name__
        raise ValueError(f"{said} is not a valid {getattr(kind, '__name__', kind)}") from error
