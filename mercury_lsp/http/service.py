"""Completions for clients of the HTTP API, by the engine and the scheduler that language servers use.

Equal requests share one completion, which stops when the last client that waits for it is gone. A completion is
written in fills of the engine's own length, one after another, so that others get their turn between two of them.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Literal

from mercury_engine.api import (
    MAX_SLOTS,
    Answer,
    Control,
    Fill,
    FillRequest,
    InferenceEngine,
    Request,
    RewriteRequest,
)
from mercury_engine.errors import Cancelled, ModelError
from mercury_engine.text.stop_texts import begun, first_of

from mercury_lsp.completion.postprocessing import postprocess
from mercury_lsp.engine_host.edit_engine import EditEngine
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.http.errors import queue_full
from mercury_lsp.http.gap import Gap
from mercury_lsp.settings import Settings

MAX_WRITING = 128
"""Most completions that run or wait; more are refused."""

MAX_AT_ONCE = 3
"""Most fills handed to the engine at a time; it answers four, so an editor's never waits for one of these to end."""

MAX_BESIDE_EDITOR = 1
"""The same while an editor asks; the fill gives way to the editor's next request."""

MAX_STOPS = 8
"""Times that a completion gives way to an editor's requests; then it runs beside them."""

EDITOR_SECONDS = 2.0
"""For which an editor counts as asking after it did."""

FinishReason = Literal["stop", "length", "content_filter"]


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished completion."""

    text: str
    finish_reason: FinishReason
    """content_filter: the line looks like a secret, so the model was not asked."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Those of them that had been read before."""
    completion_tokens: int = 0
    read_seconds: float = 0.0
    """Of the first fill's time, the share of the tokens that it read among those that it read and wrote."""
    seconds: float = 0.0
    others: tuple[str, ...] = ()
    """Further candidates."""


class Writing:
    """A completion that is being written, for all who asked for it."""

    def __init__(self) -> None:
        self.control = Control(is_patient=True)
        """Of what the engine does for it now."""
        self.is_ended = False
        """Whether it is to end with the text that it has, or nobody waits for it any more."""
        self.text = ""
        """As far as it is known; its beginning never changes."""
        self._grown = asyncio.Event()
        self._readers = 0
        self._task: asyncio.Task[Completion] | None = None

    def run(self, task: "asyncio.Task[Completion]") -> None:
        self._task = task
        task.add_done_callback(lambda _: self._tell())

    def end(self) -> None:
        """End with the text so far."""
        self.is_ended = True
        self.control.cancel.set()

    def grow(self, text: str) -> None:
        """The text has become this."""
        self.text = text
        self._tell()

    async def pieces(self) -> AsyncGenerator[str]:
        """What is added to the text, until it is finished; close the generator. Raises what the writing raises."""
        assert self._task is not None
        sent = 0
        self._readers += 1
        try:
            while True:
                grown = self._grown
                if piece := self.text[sent:]:
                    sent = len(self.text)
                    yield piece
                elif self._task.done():
                    self._task.result()
                    return
                else:
                    await grown.wait()
        finally:
            self._readers -= 1
            if not self._readers:
                self.is_ended = True
                self._task.cancel()

    async def whole(self) -> Completion:
        """The completion, once it is finished. Raises what the writing raises."""
        async for _ in self.pieces():
            pass
        return self.completion

    @property
    def completion(self) -> Completion:
        assert self._task is not None
        return self._task.result()

    def _tell(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()


class Service:
    """Answers the clients of one server; to be used from the event loop's thread."""

    def __init__(self, engines: Engines, settings: Settings):
        self.settings = settings
        self._lease = engines.lease()
        self.edits = EditEngine(engines, self._lease)
        self.edits.use(settings)
        self._writing: dict[Gap, Writing] = {}
        self._slots: dict[Hashable, Writing] = {}
        self._turns = asyncio.Condition()
        self._running = 0
        self.note: Callable[[Completion], None] = lambda _: None
        """Called with each completion that has finished."""
        self._answering = 0

    async def engine(self) -> InferenceEngine:
        """The engine, loaded at the first call. Raises what loading it raises."""
        return self._lease.engine or await self._lease.load(self.settings)

    async def model(self) -> str:
        """The model's name as clients see it, who choose templates by it. Raises what loading it raises."""
        return (await self.engine()).name.lower().replace(" ", "-")

    def write(self, gap: Gap, slot: Hashable = None) -> Writing:
        """The completion of a gap, which begins now; that of an equal gap if one is being written to its end.

        `slot`: the newest request of a slot ends the older ones, with the text that they have. Raises ApiError if too
        many are waiting.
        """
        writing = self._writing.get(gap)
        if writing is None or writing.is_ended:
            if len(self._writing) >= MAX_WRITING:
                raise queue_full()
            writing = self._writing[gap] = Writing()
            task = asyncio.ensure_future(self._written(gap, writing))
            writing.run(task)
            task.add_done_callback(lambda _: self._forget(gap, slot, writing))
        older = self._slots.get(slot) if slot is not None else None
        if older is not None and older is not writing:
            older.end()
        if slot is not None:
            self._slots[slot] = writing
        return writing

    @property
    def under_way(self) -> int:
        """Completions that run or wait."""
        return len(self._writing)

    async def answer(self, request: Request, control: Control) -> Answer:
        """The engine's answer to a whole request; cancelling stops it.

        Raises ApiError if too many are waiting, and what the engine raises.
        """
        if self._answering >= MAX_WRITING:
            raise queue_full()
        self._answering += 1
        try:
            await self.engine()
            answer: Answer | None
            if isinstance(request, RewriteRequest):
                answer = await self.edits.rewrite(request, control)
            else:
                answer = await self._lease.answer(request, control)
        finally:
            self._answering -= 1
        if answer is None:
            raise no_model()
        return answer

    def _forget(self, gap: Gap, slot: Hashable, writing: Writing) -> None:
        if self._writing.get(gap) is writing:
            del self._writing[gap]
        if self._slots.get(slot) is writing:
            del self._slots[slot]

    def close(self) -> None:
        """Stop using the engines; returns at once."""
        for writing in self._writing.values():
            writing.end()
        self._lease.close()
        self.edits.close()

    async def _written(self, gap: Gap, writing: Writing) -> Completion:
        await self.engine()
        if not gap.max_tokens:
            return await self._read(gap, writing.control)
        draft = _Draft(gap)
        if draft.context.on_secret:
            return Completion("", "content_filter")
        try:
            stops = 0
            while (request := draft.request()) is not None:
                fill = await self._filled(request, writing, gives_way=stops < MAX_STOPS)
                if fill is None:
                    stops += 1
                    continue
                draft.take(fill)
                writing.grow(draft.settled)
        except Cancelled:
            if not writing.is_ended:
                raise
        completion = draft.completion()
        self.note(completion)
        writing.grow(completion.text)
        return completion

    async def _read(self, gap: Gap, control: Control) -> Completion:
        """Read a gap's context while no user waits."""
        try:
            fill = await self._lease.fill(gap.warming(), control, ahead=True)
        except Cancelled:
            fill = None
        tokens, read = (fill.prompt_tokens, fill.tokens_read) if fill is not None else (0, 0)
        return Completion("", "length", tokens, tokens - read)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Waits until the engine may be asked."""
        async with self._turns:
            await self._turns.wait_for(self._has_room)
            self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            async with self._turns:
                self._turns.notify_all()

    def _has_room(self) -> bool:
        return self._running < (MAX_BESIDE_EDITOR if self._has_editor() else MAX_AT_ONCE)

    def _has_editor(self) -> bool:
        return self._lease.others_asked_within(EDITOR_SECONDS)

    async def _filled(self, request: FillRequest, writing: Writing, gives_way: bool) -> Fill | None:
        """The engine's fill; None if it has given way to an editor's request. What was read by then stays cached."""
        writing.control = control = Control(is_patient=True)
        if writing.is_ended:
            raise Cancelled("a newer request took its place")
        async with self._turn():
            ahead = gives_way and self._has_editor()
            try:
                fill = await self._lease.fill(replace(request, effort=self.settings.effort), control, ahead)
            except Cancelled:
                if ahead and not writing.is_ended:
                    return None
                raise
        if fill is None:
            raise no_model()
        return fill


def no_model() -> ModelError:
    """There is no engine to ask."""
    return ModelError("no model is loaded; run mercury-lsp doctor")


class _Draft:
    """A completion so far, and what the engine is asked next."""

    def __init__(self, gap: Gap) -> None:
        self._gap, self._started = gap, perf_counter()
        self.context, self._snapshot = gap.context()
        self._text = ""
        self._tokens = 0
        self._first: Fill | None = None
        self._first_seconds = 0.0
        self._reason: FinishReason | None = None
        self._has_suffix = bool(gap.suffix.strip())

    @property
    def settled(self) -> str:
        """The text without an end that may become a part of a stop text."""
        held = 0 if self._reason else max((begun(self._text, stop) for stop in self._gap.stop), default=0)
        settled = self._text[: len(self._text) - held]
        return settled if self._reason else settled.rstrip()

    def request(self) -> FillRequest | None:
        """The next fill to ask for; None when the text is finished."""
        left = self._gap.max_tokens - self._tokens
        deadline = None
        if self._gap.deadline_ms is not None and self._first is not None:
            deadline = self._gap.deadline_ms - 1000 * (perf_counter() - self._started)
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
        is_cut = len(added) < len(fill.text.rstrip())
        self._text += added
        if self._cut_at_stop():
            return
        if is_cut or (fill.is_finished and (self._has_suffix or not self.context.multiline)):
            self._reason = "stop"
        elif self._gap.candidates > 1:
            self._reason = "length"
        elif fill.is_finished:
            self._break_line(bool(added))
        elif not added:  # without a token although there was time: the model ends the text here
            self._text, self._reason = self._text.rstrip(), "stop" if fill.steps and not fill.tokens else "length"

    def _break_line(self, has_text: bool) -> None:
        """Go on in the next line: where nothing follows the gap, a fill ends with its line."""
        if not has_text and self._text.endswith("\n\n"):
            self._text, self._reason = self._text.rstrip(), "stop"
            return
        self._text += "\n"
        self._cut_at_stop()

    def _cut_at_stop(self) -> bool:
        """End the text before a stop text; False if it has none."""
        end = first_of(self._text, filter(None, self._gap.stop))
        if end is not None:
            self._text, self._reason = self._text[:end], "stop"
        return end is not None

    def completion(self) -> Completion:
        first = self._first
        if first is None:
            return Completion("", "length")
        text = self._text if self._reason else self._text.rstrip()
        read_share = first.tokens_read / max(1, first.tokens_read + first.tokens)
        return Completion(
            text,
            self._reason or "length",
            first.prompt_tokens,
            max(0, first.prompt_tokens - first.tokens_read),
            self._tokens,
            self._first_seconds * read_share,
            perf_counter() - self._started,
            tuple(postprocess(each.text, self.context, self._snapshot) for each in first.others),
        )
