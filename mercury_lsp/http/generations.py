"""Texts without a gap for clients of the HTTP API: a few generations at a time, beside the fills of editors."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from mercury_engine.api import GenerateRequest, Generation, TokenLogProbability

from mercury_lsp.http.draft import Completion
from mercury_lsp.http.errors import queue_full
from mercury_lsp.http.service import Service, Writing

MAX_AT_ONCE = 4
"""Generations that share the engine's passes with each other and with fills."""

MAX_WRITING = 64
"""Generations that run or wait; more are refused."""


@dataclass(frozen=True, slots=True)
class Generated(Completion):
    """A finished generation."""

    log_probabilities: tuple[TokenLogProbability, ...] = ()


class Generations:
    """Generates for the clients of one server; used on the event loop's thread only."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._turns = asyncio.Semaphore(MAX_AT_ONCE)
        self._under_way = 0

    def write(self, request: GenerateRequest, settled: Callable[[str], str] | None = None) -> Writing:
        """The generation, which begins now.

        `settled`: what of an unfinished text clients may see; None: nothing. Raises ApiError if too many are waiting.
        """
        if self._under_way >= MAX_WRITING:
            raise queue_full()
        self._under_way += 1
        writing = Writing()
        task = asyncio.ensure_future(self._generated(request, writing, settled))
        writing.run(task)
        task.add_done_callback(lambda _: self._end())
        return writing

    def _end(self) -> None:
        self._under_way -= 1

    async def _generated(
        self, request: GenerateRequest, writing: Writing, settled: Callable[[str], str] | None
    ) -> Generated:
        engine, started = await self._service.engine(), perf_counter()
        if settled is not None:
            writing.control.on_text = _growing(writing, settled)
        async with self._turns:
            found = await engine.answer(request, writing.control)
        assert isinstance(found, Generation)
        made = Generated(
            found.text,
            found.finish_reason,
            found.prompt_tokens,
            found.cached_tokens,
            found.tokens,
            seconds=perf_counter() - started,
            log_probabilities=found.log_probabilities,
        )
        self._service.note(made)
        return made


def _growing(writing: Writing, settled: Callable[[str], str]) -> Callable[[str], None]:
    """Appends parts of a text to the writing; may be called on the engine's thread."""
    loop, parts = asyncio.get_running_loop(), list[str]()

    def grow(part: str) -> None:
        parts.append(part)
        writing.grow(settled("".join(parts)))

    def tell(part: str) -> None:
        loop.call_soon_threadsafe(grow, part)

    return tell
