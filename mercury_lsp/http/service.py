"""Completions for clients of the HTTP API, by the engine and scheduler of the language servers.

Equal requests share one completion, which stops when its last client disconnects. A gap is filled in several requests
to the engine, so that others get their turn in between.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

from mercury_engine.api import (
    Answer,
    Control,
    Fill,
    FillRequest,
    GenerateRequest,
    InferenceEngine,
    Rewrite,
    RewriteRequest,
)
from mercury_engine.errors import Cancelled, ModelError

from mercury_lsp.engine_host.edit_engine import EditEngine
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.http.draft import Completion, CompletionDraft
from mercury_lsp.http.errors import queue_full
from mercury_lsp.http.gap import Gap
from mercury_lsp.settings import Settings

MAX_OPEN = 128
"""Requests that run or wait; more are rejected."""

MAX_AT_ONCE = 3
"""Concurrent fills, and as many replies and rewrites; the engine runs four requests, so an editor's waits for a fill
at most."""

MAX_BESIDE_EDITOR = 1
"""Concurrent fills while an editor is active; they yield to its next request."""

MAX_STOPS = 8
"""A completion yields to an editor's requests this often; then it runs beside them."""

MAX_SEARCHED_CHARS = 20_000
"""Most characters of other files to search for secrets on the event loop, in up to 40 ms."""

EDITOR_SECONDS = 2.0
"""An editor counts as active this long after a request."""


class Writing:
    """A completion in progress, shared by all who requested it."""

    def __init__(self, complete: Callable[["Writing"], Coroutine[Any, Any, Completion]]) -> None:
        self.control = Control(is_patient=True)
        """Of the engine's current request."""
        self.is_ended = False
        """Whether it is to end with the text so far, or nobody waits for it."""
        self.text = ""
        """The text so far; its beginning never changes."""
        self._grown = asyncio.Event()
        self._readers = 0
        self.task = asyncio.ensure_future(complete(self))
        self.task.add_done_callback(lambda _: self._tell())

    def end(self) -> None:
        """End with the text so far."""
        self.is_ended = True
        self.control.cancel.set()

    def grow(self, text: str) -> None:
        self.text = text
        self._tell()

    async def pieces(self) -> AsyncGenerator[str]:
        """Additions to the text until it is finished; close the generator. Raises what the completion raises."""
        sent = 0
        self._readers += 1
        try:
            while True:
                grown = self._grown
                if piece := self.text[sent:]:
                    sent = len(self.text)
                    yield piece
                elif self.task.done():
                    self.task.result()
                    return
                else:
                    await grown.wait()
        finally:
            self._readers -= 1
            if not self._readers:
                self.is_ended = True
                self.task.cancel()

    async def whole(self) -> Completion:
        """The completion, once it is finished. Raises what the completion raises."""
        async for _ in self.pieces():
            pass
        return self.task.result()

    def _tell(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()


class Service:
    """Answers the clients of one server; for the event loop's thread."""

    def __init__(self, engines: Engines, settings: Settings):
        self.settings = settings
        self._lease = engines.lease()
        self.edits = EditEngine(engines, self._lease)
        self.edits.use(settings)
        self._writings = set[Writing]()
        self._answering = 0
        self._fills: dict[Gap, Writing] = {}
        self._slots: dict[Hashable, Writing] = {}
        self._turns = asyncio.Condition()
        self._preparing = asyncio.Lock()
        self._long = asyncio.Semaphore(MAX_AT_ONCE)
        """For replies and rewrites."""
        self._running = 0
        self.note: Callable[[Completion], None] = lambda _: None
        """Called with each completion that has finished."""

    @property
    def is_loaded(self) -> bool:
        return self._lease.engine is not None

    @property
    def under_way(self) -> int:
        """Requests that run or wait."""
        return len(self._writings) + self._answering

    async def engine(self) -> InferenceEngine:
        """The engine, loaded at the first call. Raises what loading it raises."""
        return self._lease.engine or await self._lease.load(self.settings)

    async def model(self) -> str:
        """The model's name, by which clients choose templates. Raises what loading it raises."""
        return (await self.engine()).name.lower().replace(" ", "-")

    def fill(self, gap: Gap, slot: Hashable = None) -> Writing:
        """A new completion of a gap, or the one in progress for an equal gap.

        `slot`: the newest request of a slot ends the older ones, which keep their text so far. Raises ApiError if too
        many requests are open.
        """
        writing = self._fills.get(gap)
        if writing is None or writing.is_ended:
            writing = self._fills[gap] = self._begun(lambda made: self._filled(gap, made))
        older = self._slots.get(slot)
        if older is not None and older is not writing:
            older.end()
        if slot is not None:
            self._slots[slot] = writing
        return writing

    def generate(self, request: GenerateRequest, settled: Callable[[str], str] | None = None) -> Writing:
        """A new text without a gap.

        `settled`: the part of an unfinished text that clients may see; None: nothing. Raises ApiError if too many
        requests are open.
        """
        return self._begun(lambda made: self._generated(request, made, settled))

    async def answer(self, request: FillRequest | RewriteRequest, control: Control) -> Answer:
        """The engine's answer to a whole request; cancelling stops it.

        Raises ApiError if too many requests are open, and what the engine raises.
        """
        if isinstance(request, RewriteRequest):
            return _found(await self.rewrite(request, control))
        with self._counted():
            await self.engine()
            return _found(await self._lease.answer(request, control))

    async def rewrite(self, request: RewriteRequest, control: Control) -> Rewrite | None:
        """A region rewritten; None if no model can do so now. Cancelled and raises as for `answer`."""
        with self._counted():
            await self.engine()
            async with self._long:
                return await self.edits.rewrite(request, control)

    def close(self) -> None:
        """Stop using the engines; returns at once."""
        for writing in self._writings:
            writing.end()
        self._lease.close()
        self.edits.close()

    def _begun(self, complete: Callable[[Writing], Coroutine[Any, Any, Completion]]) -> Writing:
        self._require_room()
        writing = Writing(complete)
        self._writings.add(writing)
        writing.task.add_done_callback(lambda _: self._forget(writing))
        return writing

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Counts a request as open. Raises ApiError if too many are."""
        self._require_room()
        self._answering += 1
        try:
            yield
        finally:
            self._answering -= 1

    def _require_room(self) -> None:
        """Raise ApiError if too many requests are open."""
        if self.under_way >= MAX_OPEN:
            raise queue_full()

    def _forget(self, writing: Writing) -> None:
        self._writings.discard(writing)
        for gap in [gap for gap, each in self._fills.items() if each is writing]:  # hashing all gaps takes long
            del self._fills[gap]
        self._slots = {slot: each for slot, each in self._slots.items() if each is not writing}

    async def _filled(self, gap: Gap, writing: Writing) -> Completion:
        await self.engine()
        if not gap.max_tokens:
            return await self._read(gap, writing.control)
        draft = await self._draft(gap)
        if draft.context.on_secret:
            return Completion("", "content_filter")
        try:
            stops = 0
            while (request := draft.request()) is not None:
                fill = await self._fill(request, writing, gives_way=stops < MAX_STOPS)
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

    async def _draft(self, gap: Gap) -> CompletionDraft:
        """The draft of a gap; much text is searched for secrets in a thread, one at a time."""
        if sum(len(each.text) for each in gap.others) < MAX_SEARCHED_CHARS:
            return CompletionDraft(gap)
        async with self._preparing:
            return await asyncio.to_thread(CompletionDraft, gap)

    async def _read(self, gap: Gap, control: Control) -> Completion:
        """Read a gap's context while no user waits."""
        try:
            fill = await self._lease.fill(gap.warming(), control, ahead=True)
        except Cancelled:
            fill = None
        tokens, read = (fill.prompt_tokens, fill.tokens_read) if fill is not None else (0, 0)
        return Completion("", "length", tokens, tokens - read)

    async def _fill(self, request: FillRequest, writing: Writing, gives_way: bool) -> Fill | None:
        """The engine's fill; None if it yielded to an editor's request. The context read so far stays cached."""
        writing.control = control = Control(is_patient=True)
        if writing.is_ended:
            raise Cancelled("a newer request took its place")
        async with self._turn():
            ahead = gives_way and self._has_editor()
            try:
                return _found(await self._lease.fill(replace(request, effort=self.settings.effort), control, ahead))
            except Cancelled:
                if ahead and not writing.is_ended:
                    return None
                raise

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Waits for a free place at the engine."""
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

    async def _generated(
        self, request: GenerateRequest, writing: Writing, settled: Callable[[str], str] | None
    ) -> Completion:
        await self.engine()
        started = perf_counter()
        if settled is not None:
            loop, parts = asyncio.get_running_loop(), list[str]()

            def grow(part: str) -> None:
                parts.append(part)
                writing.grow(settled("".join(parts)))

            def tell(part: str) -> None:
                """Called on the engine's thread."""
                loop.call_soon_threadsafe(grow, part)

            writing.control.on_text = tell
        async with self._long:
            found = _found(await self._lease.answer(request, writing.control))
        completion = Completion(
            found.text,
            found.finish_reason,
            found.prompt_tokens,
            found.cached_tokens,
            found.tokens,
            seconds=perf_counter() - started,
            log_probabilities=found.log_probabilities,
        )
        self.note(completion)
        return completion


def _found(answer: Any) -> Any:
    """The engine's answer. Raises ModelError if there is no engine."""
    if answer is None:
        raise ModelError("no model is loaded; run mercury-lsp doctor")
    return answer
