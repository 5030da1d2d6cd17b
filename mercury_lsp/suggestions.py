"""What is offered to the user."""

import re
from dataclasses import dataclass, replace
from uuid import uuid4

from mercury_engine.requests import Fill

from mercury_lsp.context import CompletionContext

Position = tuple[int, int]
"""Line and UTF-16 column, both from 0."""

_TO_FIRST_LINE_END = re.compile(r"\s*[^\r\n]+")


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

    def first_line(self) -> "Suggestion | None":
        """The text up to the end of its first line that is not blank, to be chosen instead; None if that is all."""
        found = _TO_FIRST_LINE_END.match(self.text)
        shorter = found[0].rstrip() if found else ""
        return replace(self, id=uuid4().hex, text=shorter) if shorter not in ("", self.text.rstrip()) else None
