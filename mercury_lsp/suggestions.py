"""What is offered to the user."""

from dataclasses import dataclass
from uuid import uuid4

from mercury_engine.requests import Fill

from mercury_lsp.context import CompletionContext

Position = tuple[int, int]
"""Line and UTF-16 column, both from 0."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Text to insert between two positions of one line; the cursor stands there."""

    id: str
    text: str
    start: Position
    end: Position
    confidence: float
    """Between 0 and 1."""
    steps: int
    """Denoising steps; 0 when no model was asked."""
    elapsed_ms: float

    @classmethod
    def at_cursor(cls, context: CompletionContext, text: str, fill: Fill) -> "Suggestion":
        """A fill, already trimmed to text, as a new suggestion."""
        return cls(
            id=uuid4().hex,
            text=text,
            start=context.position,
            end=context.position,
            confidence=fill.confidence,
            steps=fill.steps,
            elapsed_ms=fill.elapsed * 1000,
        )
