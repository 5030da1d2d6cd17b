"""What the engine is asked and what it answers; plain data, no torch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Literal

Effort = Literal["instant", "low", "medium", "high"]

PART_OF_A_CHARACTER = "\ufffd"
"""In the text of tokens: a character whose last bytes are in the next one."""


@dataclass(frozen=True, slots=True)
class SlotView:
    """One slot of the canvas after a step, for looking at the denoising."""

    text: str
    """What it puts behind the cursor."""
    state: Literal["mask", "draft", "committed", "end"]
    confidence: float


OnStep = Callable[[tuple[SlotView, ...]], None]


@dataclass(frozen=True, slots=True)
class FillRequest:
    """Text on both sides of a gap, in blocks that are read and cached one by one.

    Reading order of the document is `far` + `near` | gap | `suffix`. The blocks of `far` and `suffix` should
    be chunks that survive edits (`chunks.split`); `near` starts where the last far block ends and ends at the
    cursor; `suffix[0]` starts at the cursor and ends at a stable boundary. What of it stands below the cursor's line
    is shown to the reader as well, in front of `far`.
    """

    near: str
    far: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    lookup_text: tuple[str, ...] = ()
    """Chunks that are not read: the rest of the document and of others, the nearest last. Where they repeat what
    stands before a slot, how they go on counts. An empty one stands between those that do not follow on one another;
    beyond `limits.ELSEWHERE_BLOCKS` the first are left out."""
    multiline: bool = False
    """False: the fill ends before its first line break."""
    max_slots: int = 32
    """Tokens at most."""
    effort: Effort = "medium"
    max_steps: int | None = None
    """Denoising steps at most; the last one settles all that is open by its best guesses. None: until done."""
    candidates: int = 1
    """Different fills to look for, all in the same forward passes; the surest becomes the answer."""
    draft: str = ""
    """Text that may stand behind the cursor: the rest of an older suggestion, a line like this one."""
    check: Callable[[str], int | None] | None = None
    """Called with a finished fill, on the caller's thread: where it breaks the document's syntax, or None.

    The slots from there on are masked again and filled otherwise, once; what is then still broken is cut off.
    """
    on_step: OnStep | None = None
    """Called after every step of the first candidate with its canvas, on the caller's thread; the fill waits."""
    deadline_ms: float | None = None
    """Milliseconds from the call of `fill`; when they are over the confident part so far is returned."""
    give_up_below: float = 0.0
    """Stop when the confidence falls below this; the part that was surer is returned."""
    cancel: Event = field(default_factory=Event)
    """Set it from any thread: the loop stops before its next step and raises `Cancelled`."""

    @property
    def follows(self) -> str:
        """What stands directly behind the gap, for as far as its block reaches."""
        return next((block for block in self.suffix if block), "")


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """Texts to be compared in a gap in place of filling it; of the gap only the context and the cancel flag matter."""

    gap: FillRequest
    texts: tuple[str, ...]

    @property
    def cancel(self) -> Event:
        """As that of a fill."""
        return self.gap.cancel


@dataclass(frozen=True, slots=True)
class Fill:
    """The answer: text for the gap (may be empty) and how sure the model is that it is right."""

    text: str
    confidence: float
    """Between 0 and 1."""
    steps: int
    """Denoising steps, each one forward pass of the writer."""
    elapsed: float
    """Seconds inside the engine."""
    unsure_from: int | None = None
    """Character of the text from which on it is likelier wrong than right; None when it is not."""
    tokens_read: int = 0
    """Context tokens that no cache held."""
    others: tuple["Fill", ...] = ()
    """Further candidates, different in text, by falling confidence."""


Request = FillRequest | ScoreRequest

Answer = Fill | list[float]
"""To a comparison the nats of its texts."""
