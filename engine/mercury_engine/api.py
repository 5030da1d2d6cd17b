"""The engine's requests and answers, which are plain data, and the protocol of engines; no torch here.

A cancel flag and callbacks, which cannot be sent to another process, are in a request's `Control`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Literal, Protocol

from mercury_engine.utility import Utility

Effort = Literal["instant", "low", "medium", "high"]

ChatFormat = Literal["plain", "tool_call"]
"""Whether a chat model writes calls of tools as JSON between <tool_call> and </tool_call>."""

PART_OF_A_CHARACTER = "\ufffd"
"""Stands in decoded text for a character whose last bytes are in the next token."""


@dataclass(frozen=True, slots=True)
class SlotView:
    """One slot of the canvas after a step, for displaying the denoising."""

    text: str
    """What the slot adds to the text after the cursor."""
    state: Literal["mask", "draft", "committed", "end"]
    confidence: float


OnStep = Callable[[tuple[SlotView, ...]], None]

Check = Callable[[str], int | None]
"""The position from which a fill breaks the document's syntax; None if it does not."""


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
    """Chunks for n-gram lookup only: the rest of this document and other documents, the nearest last.

    An empty chunk separates chunks that are not adjacent. Only the last `prompt.layout.LOOKUP_BLOCKS` chunks count.
    """
    multiline: bool = False
    """False: the fill ends before its first line break."""
    prose: bool = False
    """The gap is in a comment or a string; an unfinished text may end after any word there."""
    max_slots: int = MAX_SLOTS
    """Longest fill, in tokens."""
    effort: Effort = "medium"
    max_steps: int | None = None
    """Most forward passes after the prefill; None: no limit, 0: only read the context.

    A masked diffusion model unmasks every open slot in the last pass.
    """
    candidates: int = 1
    """Number of fills to try in the same forward passes; the one that fits best becomes the answer.

    A causal model asked for several fills of one line may add one of its own (`decoding.autoregressive.fit`).
    """
    deadline_ms: float | None = None
    """Milliseconds from the request's arrival until the confident part so far is the answer."""
    unread_limit: int | None = None
    """Most context tokens to prefill; far blocks beyond that are left out, but never the near prefix."""
    give_up_below: float = 0.0
    """Stop when the confidence falls below this, and return the part with at least this confidence."""
    utility: Utility | None = None
    """Return the most useful part, and stop when none is worth showing; None: return the whole fill.

    A fill of several lines then ends with the block, or with the statements up to a blank line (`text.ends`).
    """
    adapter: str = "gap"
    """The adapter to fill with, if the model has it."""
    foresees: bool = False
    """Whether `Fill.next_characters` is wanted."""

    @property
    def follows(self) -> str:
        """The text directly after the gap: the first suffix block that is not empty."""
        return next((block for block in self.suffix if block), "")


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

REGION_LINES_ABOVE = 2
REGION_LINES_BELOW = 7
"""Lines of a region around the cursor or the last change. In 135 positions of commits the next change is within eight
lines below in 56 % and above in 1 %; the shipped adapter learned from regions of seven lines."""

MAX_REGION_CHARS = 4000
"""Most characters of one; about a thousand tokens."""

MAX_WINDOW_LINES, MAX_WINDOW_CHARS = 64, 8000
"""Largest window around a cursor that a model of edits rewrites."""


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
    """Characters of `text` before the cursor, for formats that show it; None if it is elsewhere."""
    first_line: int = 1
    """The number of the region's first line in its document, for formats that show it."""
    give_up_below: float = 0.0
    """Leave the lines as they are where a hunk's probability falls below this."""
    enough: float | None = None
    """Stop after the first hunk with at least this probability and a line that stays; None: the whole region."""
    deadline_ms: float | None = None
    """Milliseconds from the request's arrival until it is given up."""


@dataclass(frozen=True, slots=True)
class RegionHunk:
    """Lines [start, end) of a region that become `text`, which is whole lines."""

    start: int
    end: int
    text: str
    probability: float
    """Product of its tokens' probabilities (`decoding.autoregressive.rewriting`), not calibrated."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The new lines of a region; the same lines mean no change."""

    text: str
    """The region's own text if the rewrite is not finished."""
    steps: int
    """Forward passes after the prompt."""
    elapsed: float = 0.0
    """Seconds inside the engine, once it has answered."""
    is_finished: bool = False
    """The model reached the region's end; otherwise there is no answer."""
    tokens_read: int = 0
    """Prompt tokens that were not in the cache."""
    hunks: tuple[RegionHunk, ...] = ()
    """The changes from the top down, also of a rewrite that was stopped after them."""


@dataclass(frozen=True, slots=True)
class Fill:
    """Text for the gap, perhaps empty, and the model's confidence in it."""

    text: str
    confidence: float
    """Probability between 0 and 1 that the text is right."""
    steps: int
    """Forward passes after the prefill; for a masked diffusion model the denoising steps."""
    elapsed: float = 0.0
    """Seconds inside the engine, once it has answered."""
    is_finished: bool = False
    """According to the model it ends where the gap does; otherwise the rest was cut off."""
    unsure_from: int | None = None
    """First character from which the text is more likely wrong than right, if any."""
    tokens_read: int = 0
    """Context tokens that were not in the cache."""
    tokens_unread: int = 0
    """Context tokens that were left out because of the request's `unread_limit`."""
    others: "tuple[Fill, ...]" = ()
    """Further candidates with different texts, by falling confidence."""
    prompt_tokens: int = 0
    """Context tokens that the model saw, read now or before."""
    tokens: int = 0
    """Accepted tokens, including those of a part that was cut off."""
    next_characters: tuple[str, ...] = ()
    """Characters likely to be typed next, by falling probability, if filling after them ahead of time is of use."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are sampled: the most likely one at temperature 0, else by chance.

    Penalties apply first, then the temperature, then `top_k`, `top_p` and `min_p`.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    """Keep the fewest tokens with this much of the probability."""
    top_k: int = 0
    """Number of tokens; 0: all."""
    min_p: float = 0.0
    """Keep tokens with at least this share of the highest probability."""
    repetition_penalty: float = 1.0
    """Log-probabilities of tokens of the prompt and of the text are multiplied by it."""
    presence_penalty: float = 0.0
    """Subtracted from the log-probability of a token that the text holds."""
    frequency_penalty: float = 0.0
    """Subtracted for each occurrence in the text."""
    seed: int | None = None
    """Makes the text reproducible."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation, to be written out by the model's own template; messages and tools as in OpenAI's API."""

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    reply: str = ""
    """How the reply begins, with special tokens by their names; the model goes on after it."""
    thinks: bool = True
    """Whether a model that can think before its reply does, as far as its template asks (`enable_thinking`)."""


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """Text to continue without a gap, up to its end or the end of the model's context."""

    prompt: str = ""
    marked: bool = False
    """Whether names of special tokens in the prompt become these tokens; never for users' text."""
    chat: Chat | None = None
    """A conversation instead of the prompt."""
    ids: tuple[int, ...] | None = None
    """The tokens of either, if known."""
    max_tokens: int | None = None
    """Most tokens to write; None: up to the end of the model's context, 0: only read the prompt."""
    stop: tuple[str, ...] = ()
    """Texts before which the answer ends."""
    sampling: Sampling = Sampling()
    schema: str | None = None
    """A JSON schema, in JSON, that the text is to match; needs llguidance."""
    alternatives: int | None = None
    """Return the log-probability of each token and of this many alternatives; None: return none."""
    deadline_ms: float | None = None
    """Milliseconds from the request's arrival until the text so far is the answer."""


@dataclass(frozen=True, slots=True)
class TokenLogProbability:
    """A token of a generated text, and how likely the model found it."""

    text: str
    nats: float
    data: tuple[int, ...] = ()
    """Its bytes, which may be a part of a character's."""
    alternatives: "tuple[TokenLogProbability, ...]" = ()
    """The most likely tokens in its place, best first."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The text that continues a prompt."""

    text: str
    finish_reason: Literal["stop", "length"]
    """"stop": the model ended it, or a stop text was reached; "length": tokens or time were up."""
    prompt_tokens: int
    cached_tokens: int
    """Those of them that were not read again."""
    tokens: int
    """Tokens written, the one that ended the text included."""
    steps: int
    """Forward passes after the prompt."""
    elapsed: float = 0.0
    """Seconds inside the engine, once it has answered."""
    log_probabilities: tuple[TokenLogProbability, ...] = ()
    """Of each token, the one that ended the text excluded; empty unless the request asks for alternatives."""


Request = FillRequest | RewriteRequest | GenerateRequest

Answer = Fill | Rewrite | Generation


@dataclass(slots=True)
class Control:
    """A request's cancel flag, callbacks and options, for an engine in the same process."""

    cancel: Event = field(default_factory=Event)
    """May be set from any thread: the engine stops before its next pass and raises `Cancelled`."""
    on_step: OnStep | None = None
    """Called with the first candidate before and after each step of a fill, on the engine's thread, which waits."""
    check: Check | None = None
    """Called with a finished fill, on the engine's thread. The text from an error on is filled again once, then cut."""
    on_text: Callable[[str], None] | None = None
    """Called with each further part of a generated text, on the engine's thread, which waits."""
    is_patient: bool = False
    """Whether its prefill yields to interactive requests."""
    stays_here: bool = False
    """Whether the request must not leave this machine."""
    client: object = None
    """Who asks: clients are served in turn."""
    is_ahead: bool = False
    """Whether no user waits for it: it runs while nothing else does."""


TellOutcome = Callable[[Answer | Exception], None]
"""Called once for a request, with its answer or error."""

Arrived = tuple[Request, Control, TellOutcome]

NewRequests = Callable[[], Iterable[Arrived]]
"""Returns the requests that arrived since its last call."""


class Words(Protocol):
    """A model's tokens as texts; may be asked from any thread."""

    def tokens(self, text: str, marked: bool = True, begun: bool = False) -> list[int]:
        """A text's tokens.

        `marked`: names of special tokens are these tokens. `begun`: after the tokens that begin every text.
        """

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens. Raises RequestError for a token that the model does not have."""

    def piece(self, token: int) -> bytes:
        """The bytes of one token, perhaps of a part of a character. Raises RequestError."""

    def prompt(self, chat: Chat) -> str:
        """A conversation in the model's own template. Raises RequestError if it has none or refuses the messages."""


class InferenceEngine(Protocol):
    """Answers requests with one model, in this process (`engine.Engine`) or elsewhere."""

    @property
    def name(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def backend(self) -> str:
        """The implementation that runs the model, for people to read."""
        ...

    @property
    def edit_format(self) -> str | None:
        """The format in which the model was trained to rewrite regions; None if it was not."""
        ...

    @property
    def chat_format(self) -> ChatFormat | None:
        """How the model was trained to chat; None if its files have no chat template."""
        ...

    @property
    def words(self) -> Words | None:
        """The model's tokens as texts; None if the model is elsewhere."""
        ...

    @property
    def utility(self) -> Utility:
        """When a fill is worth showing while typing."""
        ...

    async def answer(self, request: Request, control: Control | None = None) -> Answer:
        """The fill, rewrite or text that the request asks for; concurrent requests share forward passes.

        Raises Cancelled once the control's flag is set, RequestError if the request asks for too much, ModelCorrupt
        if the weights compute NaN, and DeviceError if memory is full. The engine stays usable after each.
        """
        ...

    def rest(self) -> None:
        """Release resources, after a while without requests; returns at once."""

    def close(self) -> None:
        """Stop answering, and return once nothing runs any more; `answer` then raises Cancelled."""
