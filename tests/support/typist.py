"""A user who types into the server's parts in this process, with a clock that jumps over the pauses.

So a script with its pauses takes as long as the work in it, and does the same work on every machine.
"""

import asyncio
import selectors
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lsprotocol import types
from mercury_engine.api import InferenceEngine

from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.server.routes import create_server

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from on_keys import editor
from on_keys.script import Key, Script, lines_to_type, retyped

SETTLING_SECONDS = 60.0
"""Pause after which everything that waits for a pause is done."""


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting for a timer it moves the clock on, unless another thread is at work."""

    loop: "JumpingLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if timeout is None or self.loop.is_busy():
            return super().select(None)
        self.loop.seconds += timeout
        return found


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop with that clock."""

    def __init__(self) -> None:
        selector = _JumpingSelector()
        selector.loop = self
        self.seconds = 0.0
        self.is_busy: Callable[[], bool] = lambda: False
        super().__init__(selector)

    def time(self) -> float:
        return self.seconds


class Typist:
    """The server's parts for one client; made in a `JumpingLoop`."""

    def __init__(self, engine: InferenceEngine):
        self.engine = engine
        self.server = create_server(Engines(lambda _: engine), lambda _: None)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        loop.is_busy = self._is_engine_busy

    def _is_engine_busy(self) -> bool:
        shared = self.server.session.completer._lease._shared
        return shared is None or shared.engine is None or bool(shared._running)

    async def open(self, uri: str, language: str, text: str, cursor: int) -> None:
        """Open a document, ask once, and let all be read and indexed that waits for a pause."""
        await self.server.session.completer.load()
        self.server.session.document_opened(types.TextDocumentItem(uri, language, 1, text))
        await asyncio.sleep(SETTLING_SECONDS)
        await self.ask(uri, text, cursor)
        await asyncio.sleep(SETTLING_SECONDS)

    async def press(self, uri: str, key: Key, before: str, after: str) -> None:
        """Press a key, at its time, and wait for what is suggested."""
        await asyncio.sleep(key.seconds)
        self.edit(uri, key, before)
        await self.ask(uri, after, key.cursor)

    def edit(self, uri: str, key: Key, before: str) -> None:
        """The document after a key."""
        if key.kind != "jump":
            session = self.server.session
            version = session.documents.snapshot(uri).version + 1
            start, end = (_position(before, offset) for offset in (key.start, key.end))
            change = types.TextDocumentContentChangePartial(types.Range(start, end), key.text)
            session.document_changed(uri, version, [change])

    async def ask(self, uri: str, text: str, cursor: int) -> list[Any]:
        """What the server suggests while typing."""
        found, _ = await self.server.suggester.suggest(uri, _position(text, cursor), "inline", automatic=True)
        return found

    def close(self) -> None:
        self.server.session.close()


def typed_again(text: str, count: int) -> Script:
    """A script that types at least `count` characters of a text again."""
    return retyped(text, *lines_to_type(text, count, 0), 0)


def keys(script: Script, count: int) -> Iterator[tuple[Key, str, str]]:
    """The first keys of a script, with the text before and after each."""
    before = script.text
    for key, after in list(script.states())[:count]:
        yield key, before, after
        before = after


def _position(text: str, offset: int) -> types.Position:
    found = editor.position(text, offset)
    return types.Position(found["line"], found["character"])
