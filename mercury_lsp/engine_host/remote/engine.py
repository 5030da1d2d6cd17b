"""The engine at a URL, with the local engine as its fallback."""

import asyncio
import logging
import math
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import replace
from time import monotonic
from typing import Literal

from mercury_engine.api import (
    Answer,
    Control,
    Fill,
    FillRequest,
    GenerateRequest,
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
from mercury_lsp.engine_host.remote.connection import (
    MAX_MISSED,
    REPLY_SECONDS,
    Connection,
    Patience,
    RemoteError,
    unless_cancelled,
)
from mercury_lsp.engine_host.remote.dialects import PROBE, Dialect, MercuryDialect, Waiting, detected, parts_of
from mercury_lsp.settings import is_loopback

logger = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
"""Before an engine that failed is asked again; the local one answers meanwhile."""

START_SECONDS = 3.0
"""For the server to describe itself when an editor starts."""

Kind = Literal["typing", "by key", "reading", "rewrite"]
"""An automatic fill, a requested one, reading ahead, or a rewrite."""

SECONDS: dict[Kind, float] = {"typing": 3.0, "by key": 10.0, "reading": 30.0, "rewrite": 30.0}
"""For a whole answer; a request's deadline may be earlier."""

USUAL_SECONDS: dict[Kind, float] = {"typing": 0.3, "by key": 0.5, "rewrite": 1.0}
"""Expected before the first answer. Nobody waits for reading ahead."""

BEGIN_EARLY: tuple[Kind, ...] = ("typing", "by key")
"""These must begin within `Patience.seconds`, or the local engine answers."""

WORTHWHILE_SECONDS = 0.1
"""Least time left to ask the local engine after the server has missed."""


class RemoteEngine:
    """Asks the server at a URL, or a local engine while that does not answer.

    Used from one event loop at a time, but loaded and closed on threads of their own.
    """

    chat_format = words = None

    def __init__(self, url: str, load_local: Callable[[], InferenceEngine], clock: Callable[[], float] = monotonic):
        """Contacts the server; takes seconds if nothing answers, because the local engine is loaded then."""
        self.url, self._load_local, self._clock = url.partition("#")[0], load_local, clock
        self._base, self._route, self._model = parts_of(url)
        self._dialect: Dialect = MercuryDialect()
        self._about = wire.About("none")
        self._why_not = ""
        """Why the server is not asked; empty while it is."""
        self._retry_at = 0.0
        self._patience = {kind: Patience(seconds) for kind, seconds in USUAL_SECONDS.items()}
        self._overhead_ms = 0.0
        """Average time of a request outside the engine; the server's deadline is earlier by this."""
        self._connection = Connection(self._base)
        self._local: Future[InferenceEngine] | None = None
        self._trying: asyncio.Task[None] | None = None
        self._watchers: list[Callable[[], None]] = []
        self._ahead: list[Control] = []
        """Of the requests that no user waits for, since a user last asked."""
        asyncio.run(self._try(START_SECONDS))
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
        """Tells users where their text goes."""
        if self._why_not:
            return f"{self.url} does not answer ({self._why_not}); the local model does"
        return f"{self.url} answers" if is_loopback(self.url) else f"the text around the cursor goes to {self.url}"

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` on the event loop whenever the notice changes; call the result to stop."""
        self._watchers.append(changed)
        return lambda: self._watchers.remove(changed)

    async def answer(self, request: Request, control: Control | None = None) -> Answer:
        """As `InferenceEngine` has it; cancelling hangs up."""
        if isinstance(request, GenerateRequest):
            raise RequestError("a remote engine writes no text without a gap; ask its server for that")
        control, began = control or Control(), self._clock()
        if control.stays_here and not is_loopback(self.url):
            return await self._answered_here(request, control, 0.0)
        if not self._why_not:
            try:
                return await self._asked(request, control)
            except TimeoutError:
                spent = self._clock() - began
                is_late = request.deadline_ms is not None and request.deadline_ms / 1000 - spent < WORTHWHILE_SECONDS
                if is_late or _kind(request) not in BEGIN_EARLY:
                    return _nothing(request, spent)
            except RemoteError as error:
                self._fail(str(error))
        elif self._clock() >= self._retry_at and (self._trying is None or self._trying.done()):
            self._trying = asyncio.ensure_future(self._try(REPLY_SECONDS))
        return await self._answered_here(request, control, self._clock() - began)

    def rest(self) -> None:
        """Let the local engine rest, if it is loaded."""
        if (local := self._loaded) is not None:
            local.rest()

    def close(self) -> None:
        self._connection.close()
        if (local := self._loaded) is not None:
            local.close()

    async def _asked(self, request: wire.Request, control: Control) -> Answer:
        """The server's answer. Raises TimeoutError if it is late, and as the dialect and `answer` do."""
        while self._ahead and not control.is_ahead:
            self._ahead.pop().cancel.set()
        self._ahead += [control] if control.is_ahead else []
        began, limit, kind = self._clock(), request.deadline_ms, _kind(request)
        patience = self._patience.get(kind) or Patience(SECONDS[kind])
        waiting = Waiting(min(SECONDS[kind], math.inf if limit is None else limit / 1000))
        if limit is not None:
            request = replace(request, deadline_ms=max(limit / 2, limit - self._overhead_ms))
        asking = self._dialect.answer(self._connection, request, control, waiting)

        def look() -> None:
            if self._why_not:  # as other questions found out
                raise RemoteError(self._why_not)
            if kind in BEGIN_EARLY and not waiting.has_begun and self._clock() - began > patience.seconds:
                raise TimeoutError

        try:
            answer = await unless_cancelled(asking, control, waiting.seconds, look)
        except TimeoutError:
            patience.missed()
            raise
        except (Cancelled, asyncio.CancelledError):
            patience.withdrawn(self._clock() - began)
            raise
        finally:
            if patience.is_over:
                self._fail(f"it missed {MAX_MISSED} deadlines")
        patience.answered(self._clock() - began)
        overhead_ms = 1000 * (self._clock() - began - answer.elapsed)
        self._overhead_ms += 0.2 * (max(0.0, overhead_ms) - self._overhead_ms)
        return await _checked(answer, control)

    async def _answered_here(self, request: wire.Request, control: Control, spent: float) -> Answer:
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

    async def _try(self, seconds: float) -> None:
        """Detect the server's dialect, and use the server if it answers."""
        try:
            async with asyncio.timeout(seconds), aclosing(Connection(self._base)) as connection:
                self._dialect, self._about = await detected(connection, self._route, self._model)
                if self._why_not:
                    await self._dialect.answer(connection, PROBE, Control(), Waiting(seconds))
        except (RemoteError, RequestError, TimeoutError) as error:
            self._fail(str(error) or "it took too long")
        else:
            self._why_not = ""
            self._tell()

    def _fail(self, why: str) -> None:
        """Use the local engine for a while."""
        self._retry_at = self._clock() + RETRY_SECONDS
        for patience in self._patience.values():
            patience.renew()
        if self._why_not != why:
            self._why_not = why
            logger.warning("%s", self.notice)
            self._tell()

    def _tell(self) -> None:
        for changed in [*self._watchers]:
            changed()

    def _begun(self) -> "Future[InferenceEngine]":
        """The local engine; starts to load it if necessary, again after a failure."""
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
    """The server's description. Raises RemoteError, also if nothing answers in time, and RequestError."""
    base, route, model = parts_of(url)
    try:
        async with aclosing(Connection(base)) as connection:
            return (await detected(connection, route, model))[1]
    except TimeoutError:
        raise RemoteError("it took too long") from None


def _kind(request: wire.Request) -> Kind:
    if not isinstance(request, FillRequest):
        return "rewrite"
    if request.max_steps == 0:
        return "reading"
    return "by key" if request.utility is None else "typing"


async def _checked(answer: Answer, control: Control) -> Answer:
    """The answer up to its first syntax error: the check cannot be sent to the server."""
    if not isinstance(answer, Fill) or control.check is None:
        return answer
    wrong = await asyncio.to_thread(control.check, answer.text)
    if wrong is None:
        return answer
    return replace(answer, text=truncated(answer.text[:wrong], ""), is_finished=False)


def _nothing(request: wire.Request, spent: float) -> Answer:
    """An empty answer, when the time is up."""
    if isinstance(request, RewriteRequest):
        return Rewrite(request.text, 0, spent)
    return Fill("", 0.0, 0, spent)
