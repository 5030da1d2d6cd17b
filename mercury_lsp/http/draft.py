"""A completion in progress: a series of fills, and the rules that end it."""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Literal

from mercury_engine.api import MAX_SLOTS, Fill, FillRequest, TokenLogProbability
from mercury_engine.text.ends import begun, first_of, repeat_begun, repeat_start

from mercury_lsp.completion.postprocessing import postprocess
from mercury_lsp.http.gap import Gap

FinishReason = Literal["stop", "length", "content_filter"]


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished completion."""

    text: str
    finish_reason: FinishReason
    """"content_filter": the line looks like a secret, so the model was not asked."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that were already cached."""
    completion_tokens: int = 0
    read_seconds: float = 0.0
    """Prefill time of the first fill, estimated by its share of tokens read."""
    seconds: float = 0.0
    others: tuple[str, ...] = ()
    """Further candidates."""
    log_probabilities: tuple[TokenLogProbability, ...] = ()


class CompletionDraft:
    """A completion so far, and what the engine is asked next."""

    def __init__(self, gap: Gap) -> None:
        self._gap, self._started = gap, perf_counter()
        self.context, self._snapshot = gap.context()
        self._text = ""
        self._checked = 0
        """Number of lines known not to be repeats."""
        self._tokens = 0
        self._first: Fill | None = None
        self._first_seconds = 0.0
        self._reason: FinishReason | None = None
        self._has_suffix = bool(gap.suffix.strip())

    @property
    def settled(self) -> str:
        """The text without an end that may still be cut off: the start of a stop text, a line, or a repeat."""
        if self._reason == "stop":
            return self._text
        held = max((begun(self._text, stop) for stop in self._gap.stop), default=0)
        settled = self._text[: len(self._text) - held]
        first, *lines = settled.split("\n")
        if lines:
            whole = [first, *lines[:-1]]
            settled = "\n".join(whole[: len(whole) - repeat_begun(whole)])
        return settled.rstrip()

    def request(self) -> FillRequest | None:
        """The next fill to ask for; None when the text is finished."""
        left = self._gap.max_tokens - self._tokens
        deadline = self._milliseconds_left() if self._first is not None else None
        if self._reason or left <= 0 or (deadline is not None and deadline <= 0):
            return None
        candidates = self._gap.candidates if self._first is None else 1
        request = self.context.after(self._text).request()
        return replace(request, max_slots=min(left, MAX_SLOTS), deadline_ms=deadline, candidates=candidates)

    def take(self, fill: Fill) -> None:
        """Add a fill to the text."""
        if self._first is None:
            self._first, self._first_seconds = fill, perf_counter() - self._started
        self._tokens += max(1, fill.tokens)
        added = postprocess(fill.text, self.context.after(self._text), self._snapshot)
        is_cut = not added.startswith(fill.text.rstrip())  # brackets may have been closed after the cut
        self._text += added
        if self._cut():
            return
        if is_cut or (fill.is_finished and (self._has_suffix or not self.context.multiline)):
            self._reason = "stop"
        elif self._gap.candidates > 1:
            self._reason = "stop" if fill.is_finished else "length"
        elif fill.is_finished and not added and self._text.endswith("\n\n"):
            self._text, self._reason = self._text.rstrip(), "stop"
        elif fill.is_finished:  # with its line, as nothing follows the gap
            self._text += "\n"
            self._cut()
        elif not added:  # although there was time: the model ends the text here
            left = self._milliseconds_left()
            is_late = not fill.steps or (left is not None and left <= 0)
            self._reason = "length" if is_late else "stop"
            self._text = self._text if is_late else self._text.rstrip()

    def _milliseconds_left(self) -> float | None:
        """Time until the deadline; None without one."""
        deadline = self._gap.deadline_ms
        return None if deadline is None else deadline - 1000 * (perf_counter() - self._started)

    def _cut(self) -> bool:
        """End the text before a stop text, or before lines that repeat those above them; False if there are none."""
        end = first_of(self._text, filter(None, self._gap.stop))
        if end is not None:
            self._text, self._reason = self._text[:end], "stop"
            return True
        lines = self._text.split("\n")
        start = repeat_start(lines[:-1], self._checked)
        self._checked = len(lines) - 1
        if start is not None:
            self._text, self._reason = "\n".join(lines[:start]).rstrip(), "stop"
        return start is not None

    def completion(self) -> Completion:
        if (first := self._first) is None:
            return Completion("", "length")
        is_whole = self._gap.candidates > 1 and first.is_finished
        text = self._text if self._reason == "stop" else _whole_lines(self._text, is_whole)
        read_share = first.tokens_read / max(1, first.tokens_read + first.tokens)
        return Completion(
            text,
            self._reason or "length",
            first.prompt_tokens,
            max(0, first.prompt_tokens - first.tokens_read),
            self._tokens,
            self._first_seconds * read_share,
            perf_counter() - self._started,
            tuple(
                _whole_lines(postprocess(each.text, self.context, self._snapshot), each.is_finished)
                for each in first.others
            ),
        )


def _whole_lines(text: str, is_whole: bool) -> str:
    """A text of several lines without the last one, unless it is whole."""
    return (text if is_whole else text.rpartition("\n")[0] or text).rstrip()
