"""The language server as `mercury-lsp` runs it, with a stopwatch around its engine: `observed_server.py RECORD`.

Every fill becomes a line of JSON in the file RECORD, times in seconds of the system's monotonic clock.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

from mercury_engine.api import Answer, Control, Fill, InferenceEngine, Request

from mercury_lsp.commands.stdio import serve
from mercury_lsp.engine_host.engines import SharedEngine
from mercury_lsp.engine_host.loading import load_engine
from mercury_lsp.settings import Settings


class Stopwatch:
    """An engine that records when each fill was requested, begun, prefilled and finished."""

    def __init__(self, engine: Any, path: Path):
        self._engine = engine
        self._out = path.open("a", buffering=1)  # by lines: the server's process ends without closing files
        self._row: dict[str, Any] = {}
        self._context = engine.cache.context
        engine.cache.context = self._timed_context
        self._passes: list[int] = []
        self._read_together = engine.reader.read_together
        engine.reader.read_together = self._counted
        self._read_in_parts = engine.reader.read_in_parts
        engine.reader.read_in_parts = self._counted_in_parts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def answer(self, request: Request, control: Control | None = None) -> Answer:
        """The engine's own answer. A key's request may come while one that looks ahead is being stopped."""
        row = self._row = {"asked": asked_at.pop(id(request), None), "begun": monotonic(), "read": monotonic()}
        before, passes, steps = self._engine.cache.tokens_read, list[int](), None
        self._passes = passes
        try:
            answer = await self._engine.answer(request, control)
            steps = answer.steps if isinstance(answer, Fill) else None
        finally:
            read = self._engine.cache.tokens_read - before
            row |= {"ended": monotonic(), "steps": steps, "tokens_read": read, "passes": passes}
            row["is_ahead"] = control is not None and control.is_ahead
            self._out.write(json.dumps(row) + "\n")
        return answer

    def _counted(self, forwards: Any) -> Any:
        """A pass, noting over how many tokens it goes."""
        self._passes.append(sum(forward.rows for forward in forwards))
        return self._read_together(forwards)

    def _counted_in_parts(self, forward: Any) -> Any:
        """The same of a pass that is paused between layers."""
        self._passes.append(forward.rows)
        return (yield from self._read_in_parts(forward))

    def _timed_context(self, *arguments: Any) -> Any:
        try:
            return (yield from self._context(*arguments))
        finally:
            self._row["read"] = monotonic()


asked_at: dict[int, float] = {}
"""The time at which the event loop asked the engine, by the request's identity."""


def noting(answer: Callable[..., Any]) -> Callable[..., Any]:
    """The shared engine's `answer`, recording when it was called."""

    def noted(shared: SharedEngine, request: Request, control: Control) -> Any:
        asked_at[id(request)] = monotonic()
        return answer(shared, request, control)

    return noted


def main() -> None:
    record = Path(sys.argv[1])
    os.environ["XDG_STATE_HOME"] = str(record.absolute().parent)  # what is counted here is not the user's

    def load(settings: Settings) -> InferenceEngine:
        watched: Any = Stopwatch(load_engine(settings), record)
        engine: InferenceEngine = watched
        return engine

    SharedEngine.answer = noting(SharedEngine.answer)  # type: ignore[method-assign]
    serve(load)


if __name__ == "__main__":
    main()
