"""The engine that a URL names, and the local one in its place while it does not answer."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from time import monotonic

from mercury_engine.api import (
    Answer,
    Control,
    Fill,
    InferenceEngine,
    Request,
    Rewrite,
    RewriteRequest,
)
from mercury_engine.decoding.truncation import truncated
from mercury_engine.errors import Cancelled, RequestError
from mercury_engine.utility import Utility

from mercury_lsp.engine_host.own_thread import started
from mercury_lsp.engine_host.remote import wire
from mercury_lsp.engine_host.remote.connection import ANSWER_SECONDS, Connection, RemoteError
from mercury_lsp.engine_host.remote.dialects import Dialect, MercuryDialect, detected, parts_of
from mercury_lsp.settings import is_loopback

logger = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
"""Seconds after which an engine that did not answer is asked again, while the local one answers."""

MAX_MISSED = 3
"""Deadlines missed one after another, after which it counts as not answering."""

POLL_SECONDS = 0.02
"""Between two looks at the cancel flag while a reply is awaited."""


class RemoteEngine:
    """Asks the server at a URL; while that does not answer, a local engine does.

    Used from one event loop at a time, but loaded and closed on threads of their own.
    """

    chat_format = words = None

    def __init__(self, url: str, load_local: Callable[[], InferenceEngine], clock: Callable[[], float] = monotonic):
        """Asks what is at the URL; takes seconds if nothing is there, for then the local engine is loaded."""
        self.url, self._load_local, self._clock = url.partition("#")[0], load_local, clock
        self._base, self._route, self._model = parts_of(url)
        self._dialect: Dialect = MercuryDialect()
        self._about = wire.About("none")
        self._why_not = ""
        """Why the server is not asked now; empty while it is."""
        self._retry_at = 0.0
        self._missed = 0
        self._overhead_ms = 0.0
        """Time of a request that is not the engine's, on average; the server's deadline is earlier by this."""
        self._connection: Connection | None = None
        self._local: Future[InferenceEngine] | None = None
        self._trying: asyncio.Task[None] | None = None
        self._watchers: list[Callable[[], None]] = []
        asyncio.run(self._try())
        if self._why_not:
            self._begun().result()

    @property
    def name(self) -> str:
        return self._answering.name

    @property
    def device(self) -> str:
        return self._answering.device if self._why_not else f"{self._answering.device} at {self.url}"

    @property
    def backend(self) -> str:
        return self._answering.backend

    @property
    def edit_format(self) -> str | None:
        return self._answering.edit_format

    @property
    def utility(self) -> Utility:
        return self._answering.utility

    @property
    def has_failed(self) -> bool:
        """Whether the local engine answers."""
        return bool(self._why_not)

    @property
    def notice(self) -> str:
        """What users should know of where their text goes."""
        if self._why_not:
            return f"{self.url} does not answer ({self._why_not}); the local model does"
        return f"{self.url} answers" if is_loopback(self.url) else f"the text around the cursor goes to {self.url}"

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have `changed` called on the event loop whenever the notice changes; call the result to end that."""
        self._watchers.append(changed)
        return lambda: self._watchers.remove(changed)

    async def answer(self, request: Request, control: Control | None = None) -> Answer:
        """As `InferenceEngine` has it; cancelling hangs up."""
        control, began = control or Control(), self._clock()
        if not self._why_not:
            try:
                return await self._asked(request, control)
            except TimeoutError:
                self._miss(request.deadline_ms is not None)
                if request.deadline_ms is not None:
                    return _nothing(request, self._clock() - began)
            except RemoteError as error:
                self._fail(str(error))
        elif self._clock() >= self._retry_at and (self._trying is None or self._trying.done()):
            self._trying = asyncio.ensure_future(self._try())
        return await self._answered_here(request, control, self._clock() - began)

    def rest(self) -> None:
        """Let the local engine rest, if it is loaded."""
        if (local := self._loaded) is not None:
            local.rest()

    def close(self) -> None:
        if self._connection is not None and self._connection.loop.is_running():
            asyncio.run_coroutine_threadsafe(self._connection.close(), self._connection.loop)
        if (local := self._loaded) is not None:
            local.close()

    async def _asked(self, request: Request, control: Control) -> Answer:
        """The server's answer. Raises TimeoutError at the deadline, and as the dialect and `answer` do."""
        began, limit = self._clock(), request.deadline_ms
        if limit is not None:
            request = replace(request, deadline_ms=max(limit / 2, limit - self._overhead_ms))
        asking = asyncio.ensure_future(self._dialect.answer(self._connected(), request, control))
        try:
            async with asyncio.timeout(ANSWER_SECONDS if limit is None else limit / 1000):
                while not asking.done():
                    await asyncio.wait((asking,), timeout=POLL_SECONDS)
                    if control.cancel.is_set():  # also when it failed: closing the engine hangs up
                        raise Cancelled("cancelled while the remote engine was asked")
            answer = asking.result()
        finally:
            asking.cancel()
        self._missed = 0
        overhead_ms = 1000 * (self._clock() - began - answer.elapsed)
        self._overhead_ms += 0.2 * (max(0.0, overhead_ms) - self._overhead_ms)
        return await _checked(answer, control)

    async def _answered_here(self, request: Request, control: Control, spent: float) -> Answer:
        left = None if request.deadline_ms is None else max(0.0, request.deadline_ms / 1000 - spent)
        try:
            async with asyncio.timeout(left):
                local = await asyncio.wrap_future(self._begun())
        except TimeoutError:  # it is being loaded
            return _nothing(request, spent)
        if isinstance(request, RewriteRequest) and local.edit_format is None:
            return _nothing(request, spent)
        if left is not None:
            request = replace(request, deadline_ms=1000 * left)
        return await local.answer(request, control)

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.loop is not asyncio.get_running_loop():
            self._connection = Connection(self._base)
        return self._connection

    async def _try(self) -> None:
        """Ask what is at the URL, and from then on for answers if it is an engine."""
        connection = Connection(self._base)
        try:
            self._dialect, self._about = await detected(connection, self._route, self._model)
        except (RemoteError, RequestError, TimeoutError) as error:
            self._fail(str(error) or "it took too long")
        else:
            self._why_not, self._missed = "", 0
            self._tell()
        finally:
            await connection.close()

    def _miss(self, had_deadline: bool) -> None:
        self._missed += 1
        if not had_deadline:
            self._fail(f"no answer within {ANSWER_SECONDS:.0f} seconds")
        elif self._missed >= MAX_MISSED:
            self._fail(f"it missed {MAX_MISSED} deadlines")

    def _fail(self, why: str) -> None:
        """Have the local engine answer for a while."""
        self._missed, self._retry_at = 0, self._clock() + RETRY_SECONDS
        if self._why_not != why:
            self._why_not = why
            logger.warning("%s", self.notice)
            self._tell()

    def _tell(self) -> None:
        for changed in [*self._watchers]:
            changed()

    def _begun(self) -> "Future[InferenceEngine]":
        """The local engine, whose loading begins now if it has not; one that failed begins again."""
        if self._local is None or (self._local.done() and self._local.exception() is not None):
            self._local = started(self._load_local, "mercury-load")
        return self._local

    @property
    def _loaded(self) -> InferenceEngine | None:
        is_loaded = self._local is not None and self._local.done() and self._local.exception() is None
        return self._local.result() if self._local is not None and is_loaded else None

    @property
    def _answering(self) -> wire.About | InferenceEngine:
        return (self._loaded if self._why_not else None) or self._about


async def described(url: str) -> wire.About:
    """What is at the URL. Raises RemoteError, also where nothing answers in time, and RequestError."""
    base, route, model = parts_of(url)
    connection = Connection(base)
    try:
        _, about = await detected(connection, route, model)
    except TimeoutError:
        raise RemoteError("it took too long") from None
    finally:
        await connection.close()
    return about


async def _checked(answer: Answer, control: Control) -> Answer:
    """The answer without what would break the document's syntax: its check cannot be sent to the server."""
    if not isinstance(answer, Fill) or control.check is None:
        return answer
    wrong = await asyncio.to_thread(control.check, answer.text)
    if wrong is None:
        return answer
    return replace(answer, text=truncated(answer.text[:wrong], ""), is_finished=False)


def _nothing(request: Request, spent: float) -> Answer:
    """The answer to a request whose time is up."""
    if isinstance(request, RewriteRequest):
        return Rewrite(request.text, 0, spent)
    return Fill("", 0.0, 0, spent)
