"""The engine's requests, answers and callbacks; no torch here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Literal, Protocol

from mercury_engine.worth import Worth

Effort = Literal["instant", "low", "medium", "high"]

Source = Literal["pass", "request", "writer", "repeat"]
"""Where a settled token comes from: the pass itself, or the source of its draft."""

PART_OF_A_CHARACTER = "\ufffd"
"""Stands in decoded text for a character whose last bytes are in the next token."""


@dataclass(frozen=True, slots=True)
class SlotView:
    """One slot of the canvas after a step, for displaying the denoising."""

    text: str
    """What the slot adds to the text behind the cursor."""
    state: Literal["mask", "draft", "committed", "end"]
    confidence: float


OnStep = Callable[[tuple[SlotView, ...]], None]


MAX_SLOTS = 64
"""Longest canvas that a request may ask for, in tokens."""


@dataclass(frozen=True, slots=True)
class FillRequest:
    """Text on both sides of a gap, in blocks that are read and cached one by one.

    The document is `far` + `near` | gap | `suffix`. The blocks of `far` and `suffix` should be chunks that survive
    edits (`prompt.chunking.split`). `near` starts where the last far block ends and ends at the cursor; `suffix[0]`
    starts at the cursor and ends at a stable boundary. The reader also sees the part of the suffix below the cursor's
    line, in front of `far`.
    """

    near: str
    far: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    lookup_text: tuple[str, ...] = ()
    """Chunks that only the n-gram lookup sees: the rest of this document and other documents, the nearest last.

    Where they repeat the text before a slot, their continuation counts as an opinion. An empty chunk separates chunks
    that are not adjacent. Beyond `prompt.budget.LOOKUP_BLOCKS` chunks the first ones are left out.
    """
    multiline: bool = False
    """False: the fill ends before its first line break."""
    max_slots: int = 32
    """Longest fill, in tokens."""
    effort: Effort = "medium"
    max_steps: int | None = None
    """Maximum number of denoising steps; the last one settles every open slot by its best guess. None: no limit."""
    candidates: int = 1
    """Number of different fills to try, all in the same forward passes; the most confident becomes the answer."""
    draft: str = ""
    """Text that may belong behind the cursor: the rest of an older suggestion, or a line like this one."""
    check: Callable[[str], int | None] | None = None
    """Called with a finished fill, on the caller's thread; returns where it breaks the document's syntax, or None.

    The slots from there on are masked and filled again, once; what is still broken after that is cut off.
    """
    on_step: OnStep | None = None
    """Called with the first candidate's canvas after every step, on the caller's thread; the fill waits for it."""
    deadline_ms: float | None = None
    """Milliseconds from the call of `fill`, after which it returns the confident part of what it has."""
    unread_limit: int | None = None
    """Most context tokens to prefill; if more are unread, far blocks are left out, but never the near prefix."""
    give_up_below: float = 0.0
    """Stop when the confidence falls below this, and return the part with at least this confidence."""
    worth: Worth | None = None
    """Return the part that is worth most, and stop when none can be worth showing; None: the whole fill is wanted.

    A fill of several lines then ends with the block, or with the statements up to a blank line (`text.thought`).
    """
    adapter: str = "gap"
    """The adapter to fill with; a model that lacks it fills without."""
    cancel: Event = field(default_factory=Event)
    """May be set from any thread: the loop then stops before its next step and raises `Cancelled`."""

    @property
    def follows(self) -> str:
        """The text directly behind the gap: the first suffix block that is not empty."""
        return next((block for block in self.suffix if block), "")


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """Texts to score in a gap instead of filling it; only the gap's context and cancel flag matter."""

    gap: FillRequest
    texts: tuple[str, ...]

    @property
    def cancel(self) -> Event:
        """The gap's cancel flag."""
        return self.gap.cancel


@dataclass(frozen=True, slots=True)
class EditHunk:
    """Whole lines replaced; `start` counts characters of the file as it was after the earlier changes."""

    start: int
    removed: str
    inserted: str
    path: str | None = None
    """The file, unless it is the document itself."""


MAX_REGION_LINES = 24
"""Most lines of a region that is rewritten."""

MAX_REGION_CHARS = 4000
"""Most characters of one; about a thousand tokens."""


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """Whole lines to rewrite, after the user's recent edits.

    The document is `far` + `near` | `text` | `suffix`, in blocks as for `FillRequest`; `near` and `text` are whole
    lines.
    """

    text: str
    """The lines as they are now, the region."""
    near: str = ""
    far: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    history: tuple[EditHunk, ...] = ()
    """The user's recent edits, oldest first."""
    path: str = ""
    """The document's path, for formats that show it."""
    language: str = "plaintext"
    """The document's LSP languageId."""
    cursor: int | None = None
    """The cursor's offset in `text`, if it is there, for formats that show it."""
    give_up_below: float = 0.0
    """Leave the lines as they are where a hunk's chance falls below this."""
    enough: float | None = None
    """Stop behind the first hunk with at least this chance and a line that stays; None: rewrite the whole region."""
    deadline_ms: float | None = None
    """Milliseconds from the call of `rewrite`, after which there is no answer."""
    cancel: Event = field(default_factory=Event)
    """May be set from any thread: the rewrite then stops before its next pass and raises `Cancelled`."""


@dataclass(frozen=True, slots=True)
class RegionHunk:
    """Lines [start, end) of a region that become `text`, which is whole lines."""

    start: int
    end: int
    text: str
    chance: float
    """Product of its tokens' probabilities (`denoising.rewriting`), not calibrated."""
    stays: float
    """The same of the present tokens in their place, as far as they were read."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The lines that should stand in place of a region; the same lines mean that nothing should change."""

    text: str
    """The region's own text if the rewrite is not finished."""
    chance: float
    """Product of the hunks' chances; 0 if it is not finished."""
    change_chance: float
    """How likely the model found it that anything changes, whatever the answer."""
    steps: int
    """Forward passes behind the prompt."""
    elapsed: float
    """Seconds inside the engine."""
    is_finished: bool = False
    """The model wrote up to the region's end; otherwise there is no answer."""
    tokens_read: int = 0
    """Prompt tokens that were not in the cache."""
    hunks: tuple[RegionHunk, ...] = ()
    """What changes, from the top down; also of a rewrite that was stopped behind them."""


@dataclass(frozen=True, slots=True)
class Fill:
    """The answer: text for the gap (may be empty) and how sure the model is that it is right."""

    text: str
    confidence: float
    """Probability between 0 and 1 that the text is right."""
    steps: int
    """Number of denoising steps."""
    elapsed: float
    """Seconds inside the engine."""
    is_finished: bool = False
    """It ends where the gap does, as far as the model can tell; otherwise the rest was cut off."""
    unsure_from: int | None = None
    """Character from which on the text is more likely wrong than right; None if there is none."""
    tokens_read: int = 0
    """Context tokens that were not in the cache."""
    tokens_unread: int = 0
    """Context tokens that were left out because of the request's `unread_limit`."""
    settled_from: Mapping[Source, int] = field(default_factory=dict)
    """Number of tokens by where they come from."""
    others: tuple["Fill", ...] = ()
    """Further candidates with different texts, by falling confidence."""


Request = FillRequest | ScoreRequest | RewriteRequest

Answer = Fill | Rewrite | list[float]
"""A fill, a rewrite, or for a score request the log-likelihood of each text in nats."""

NewRequests = Callable[[], Iterable[Request]]
"""Returns the requests that arrived since its last call."""

TellOutcome = Callable[[Request, Answer | Exception], None]
"""Called once for each request, with its answer or the error that `SequentialEngine.fill` would raise."""


class SequentialEngine(Protocol):
    """An engine that answers one request after another."""

    def fill(self, request: FillRequest) -> Fill: ...

    def score(self, request: FillRequest, texts: Sequence[str]) -> list[float]: ...

    def rewrite(self, request: RewriteRequest) -> Rewrite: ...


def one_by_one(engine: SequentialEngine, more: NewRequests, done: TellOutcome) -> None:
    """`Engine.answer_all` for an engine that can only answer one request after another."""
    while requests := list(more()):
        for request in requests:
            try:
                outcome = _answer(engine, request)
            except Exception as error:
                done(request, error)
            else:
                done(request, outcome)


def _answer(engine: SequentialEngine, request: Request) -> Answer:
    if isinstance(request, FillRequest):
        return engine.fill(request)
    if isinstance(request, RewriteRequest):
        return engine.rewrite(request)
    return engine.score(request.gap, request.texts)
