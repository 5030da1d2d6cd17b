"""What is offered to the user."""

import re
from dataclasses import dataclass, replace
from uuid import uuid4

from mercury_engine.api import Fill

from mercury_lsp.context.context import CompletionContext

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
    unsure_from: int | None = None
    """Character from which on the text is likelier wrong than right; None when it is not."""

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
            unsure_from=_within(fill.unsure_from, text),
        )

    def behind(self, count: int) -> "Suggestion":
        """What remains once its first characters stand in the document."""
        unsure_from = None if self.unsure_from is None else max(0, self.unsure_from - count)
        return replace(self, text=self.text[count:], unsure_from=unsure_from)

    def led_by(self, before: str, start: Position) -> "Suggestion":
        """The same with text that already stands in the document before it."""
        unsure_from = None if self.unsure_from is None else self.unsure_from + len(before)
        return replace(self, text=before + self.text, start=start, unsure_from=unsure_from)

    def first_line(self) -> "Suggestion | None":
        """The text up to the end of its first line that is not blank, to be chosen instead; None if that is all."""
        found = _TO_FIRST_LINE_END.match(self.text)
        shorter = found[0].rstrip() if found else ""
        if shorter in ("", self.text.rstrip()):
            return None
        return replace(self, id=uuid4().hex, text=shorter, unsure_from=_within(self.unsure_from, shorter))


def _within(place: int | None, text: str) -> int | None:
    return place if place is not None and place < len(text) else None
