"""The record of one suggestion that was shown, or of one request for edits: figures only, no text and no file name."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["accepted", "partly", "typed", "rejected", "ignored", "asked"]
"""accepted: the whole text, or all of its rest, was inserted at once.
partly: the start of it was inserted at once.
typed: the user typed the same text key by key; nothing was saved.
rejected: the user typed something else there, moved away or dismissed it.
ignored: none of these; the document was closed, or another suggestion replaced it.
asked: not a suggestion, but a request sent to an edit server."""


@dataclass(frozen=True, slots=True)
class OutcomeRecord:
    """One row of the statistics; lengths are in code points, and a line break counts as one."""

    shown_at: int
    """Seconds since the epoch."""
    language: str
    client: str
    model: str
    automatic: bool
    """The editor asked on its own, not the user."""
    confidence: float
    latency_ms: float
    """Time from the request until the suggestion was sent to the client."""
    length: int
    outcome: Outcome
    saved: int
    """Characters inserted at once."""
