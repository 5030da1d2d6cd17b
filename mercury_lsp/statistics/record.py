"""What is kept of one suggestion that was shown: figures, no text and no file name."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["accepted", "partly", "typed", "rejected", "ignored"]
"""accepted: the whole text, or all that was left of it, came in at once.
partly: a beginning came in at once.
typed: the user wrote the same text key by key; nothing was saved.
rejected: the user wrote something else at its place, went away or dismissed it.
ignored: none of these; the document was closed, or another suggestion took its place."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row of the statistics; characters are code points, a line break counts as one."""

    shown_at: int
    """Seconds since the epoch."""
    language: str
    client: str
    model: str
    automatic: bool
    """The editor asked by itself, not the user."""
    confidence: float
    latency_ms: float
    """From the request until the suggestion was on its way to the client."""
    length: int
    outcome: Outcome
    typed: int
    """Characters of the suggestion that were typed key by key."""
    saved: int
    """Characters that came in at once."""
    kept: int
    """Of those, characters that still stood some time later."""
