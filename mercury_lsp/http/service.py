"""Completions for clients of the HTTP API, by the engine and scheduler of the language servers.

Equal requests share one completion, which stops when its last client disconnects. A gap is filled in several requests
to the engine, so that others get their turn in between.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from time import perf_counter
from typing import Any

from mercury_engine.api import (
    Answer,
    Control,
    Fill,
    FillRequest,
    GenerateRequest,
    Generation,
    InferenceEngine,
    Rewrite,
    RewriteRequest,
)
from mercury_engine.errors import Cancelled, ModelError

from mercury_lsp.engine_host.edit_engine import EditEngine
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.http.draft import Completion, CompletionDraft
from mercury_lsp.http.errors import ApiError
from mercury_lsp.http.gap import Gap
from mercury_lsp.settings import Settings

Complete = Callable[["Writing"], Coroutine[Any, Any, Completion]]

MAX_OPEN = 128
"""Requests that run or wait; more are rejected."""

MAX_AT_ONCE = 3
"""Concurrent fills, and as many replies and rewrites; the engine runs four requests, so an editor's waits for a fill
at most."""

MAX_STOPS = 8
"""A completion yields to an editor's requests this often; then it runs beside them."""

MAX_SEARCHED_CHARS = 20_000
"""Most characters of other files to search for secrets on the event loop, in up to 40 ms; a thread searches more."""

EDITOR_SECONDS = 2.0
"""An editor counts as active this long after a request."""


class Writing:
    """A completion in progress, shared by all who requested it."""

    def __init__(self, complete: Complete, gap: Gap | None = None) -> None:
        self.gap = gap
        self.slots = set[Hashable]()
        """Those whose newest request it answers."""
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
        self.under_way = 0
        """Requests that run or wait."""
        self._writings = set[Writing]()
        self._fills, self._long = asyncio.Semaphore(MAX_AT_ONCE), asyncio.Semaphore(MAX_AT_ONCE)
        """Places at the engine for fills, and for replies and rewrites."""
        self._beside_editor = asyncio.Lock()
        """Held by the one fill that runs while an editor is active, and yields to its next request."""
        self._preparing = ThreadPoolExecutor(1)
        self.note: Callable[[Completion], None] = lambda _: None
        """Called with each completion that has finished."""

    @property
    def is_loaded(self) -> bool:
        return self._lease.engine is not None

    async def engine(self) -> InferenceEngine:
        """The engine, loaded at the first call. Raises what loading it raises."""
        return self._lease.engine or await self._lease.load(self.settings)

    async def model(self) -> str:
        """The model's name, by which clients choose templates. Raises what loading it raises."""
        return (await self.engine()).name.lower().replace(" ", "-")

    def fill(self, gap: Gap, slot: Hashable = None) -> Writing:
        """A new completion of a gap, or the one in progress for an equal gap.

        `slot`: the newest request of a slot ends the older ones, which keep their text so far.
        """
        writing = next((each for each in self._writings if each.gap == gap and not each.is_ended), None)
        if writing is None:
            writing = self._begun(lambda made: self._filled(gap, made), gap)
        if slot is not None:
            for older in self._writings:
                if slot in older.slots and older is not writing:
                    older.end()
            writing.slots.add(slot)
        return writing

    def generate(self, request: GenerateRequest, settled: Callable[[str], str] | None = None) -> Writing:
        """A new text without a gap; `settled`: the part of an unfinished text that clients may see; None: nothing."""
        return self._begun(lambda made: self._generated(request, made, settled))

    async def answer(self, request: FillRequest | RewriteRequest, control: Control) -> Answer:
        """The engine's answer to a whole request; cancelling stops it.

        Raises ApiError if too many requests are open, and what the engine raises.
        """
        if isinstance(request, FillRequest):
            async with self._open():
                filled: Fill = await self._lease.answer(request, control)
                return filled
        if (found := await self.rewrite(request, control)) is None:
            raise ModelError("no model is loaded; run mercury-lsp doctor")
        return found

    async def rewrite(self, request: RewriteRequest, control: Control) -> Rewrite | None:
        """A region rewritten; None if no model can do so now. Cancelled and raises as for `answer`."""
        async with self._open(), self._long:
            return await self.edits.rewrite(request, control)

    def close(self) -> None:
        """Stop using the engines; returns at once."""
        for writing in self._writings:
            writing.end()
        self._lease.close()
        self.edits.close()

    def _begun(self, complete: Complete, gap: Gap | None = None) -> Writing:
        writing = Writing(complete, gap)
        self._writings.add(writing)
        writing.task.add_done_callback(lambda _: self._writings.discard(writing))
        return writing

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        """Counts a request and loads the engine. Raises ApiError if too many are open, and what loading raises."""
        if self.under_way >= MAX_OPEN:
            raise ApiError(429, "too many requests are waiting; try again in a second", code="rate_limit_reached")
        self.under_way += 1
        try:
            await self.engine()
            yield
        finally:
            self.under_way -= 1

    async def _filled(self, gap: Gap, writing: Writing) -> Completion:
        async with self._open():
            if not gap.max_tokens:
                return await self._read(gap, writing.control)
            if sum(len(each.text) for each in gap.others) < MAX_SEARCHED_CHARS:
                draft = CompletionDraft(gap)
            else:
                draft = await asyncio.get_running_loop().run_in_executor(self._preparing, CompletionDraft, gap)
            if draft.context.on_secret:
                return Completion("", "content_filter")
            try:
                await self._write(draft, writing)
            except Cancelled:
                if not writing.is_ended:
                    raise
            completion = draft.completion()
            self.note(completion)
            writing.grow(completion.text)
            return completion

    async def _read(self, gap: Gap, control: Control) -> Completion:
        """Read a gap's context while no user waits."""
        request = replace(gap.context()[0].request(), max_steps=0)
        try:
            fill: Fill = await self._lease.answer(request, control, ahead=True)
        except Cancelled:
            return Completion("", "length")
        return Completion("", "length", fill.prompt_tokens, fill.prompt_tokens - fill.tokens_read)

    async def _write(self, draft: CompletionDraft, writing: Writing) -> None:
        """Finish a draft. Where fills yield to an editor's requests, the context read so far stays cached."""
        stops = 0
        while (request := draft.request()) is not None:
            writing.control = control = Control(is_patient=True)
            if writing.is_ended:
                raise Cancelled("a newer request took its place")
            async with self._fills, self._beside_editor if self._has_editor() else nullcontext():
                ahead = stops < MAX_STOPS and self._has_editor()
                try:
                    fill = await self._lease.answer(replace(request, effort=self.settings.effort), control, ahead)
                except Cancelled:
                    if not ahead or writing.is_ended:
                        raise
                    stops += 1
                    continue
            draft.take(fill)
            writing.grow(draft.settled)

    def _has_editor(self) -> bool:
        return self._lease.others_asked_within(EDITOR_SECONDS)

    async def _generated(
        self, request: GenerateRequest, writing: Writing, settled: Callable[[str], str] | None
    ) -> Completion:
        async with self._open():
            started, loop, text = perf_counter(), asyncio.get_running_loop(), ""
            if settled is not None:

                def grow(part: str) -> None:
                    nonlocal text
                    text += part
                    writing.grow(settled(text))

                def tell(part: str) -> None:
                    """Called on the engine's thread."""
                    loop.call_soon_threadsafe(grow, part)

                writing.control.on_text = tell
            async with self._long:
                found: Generation = await self._lease.answer(request, writing.control)
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
