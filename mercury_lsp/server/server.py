"""The language server: one connection, and the parts that serve it. `requests/` handles its messages."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from threading import Thread
from typing import Any, BinaryIO

from mercury_lsp.documents import redaction
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.server.configuration import Configuration
from mercury_lsp.server.connection import Handler, RpcConnection
from mercury_lsp.server.editor import Editor, EditorCapabilities, InitializeParams
from mercury_lsp.server.logs import ClientLog, handling_server
from mercury_lsp.server.session import Session
from mercury_lsp.server.status import StatusBoard
from mercury_lsp.server.suggester import Suggester
from mercury_lsp.transport import framing

logger = logging.getLogger(__name__)


class MercuryServer(RpcConnection):
    """Completes code in the documents of one client."""

    def __init__(self, engines: Engines, handlers: Mapping[str, Handler], write: Callable[[bytes], object]):
        super().__init__(handlers, write)
        self.editor = Editor(self)
        self.status = StatusBoard(self.editor.show_status)
        self.session = Session(engines)
        self.suggester = Suggester(self.session, self.editor, self.status)
        self.configuration = Configuration(self.session, self.editor, self.status)
        self._is_stopped = False
        self._log: ClientLog | None = None

    def serve_standard_input(self) -> None:
        """Serve one client until it sends exit or closes the pipe."""
        try:
            asyncio.run(self.serve(_messages(sys.stdin.buffer)))
        except KeyboardInterrupt:
            pass
        finally:
            self.close()
            self.session.statistics.wait()

    async def serve(self, messages: AsyncIterator[Any]) -> None:
        """Handle what the client sends until it sends exit or there is no more."""
        handling_server.set(self)
        async for message in messages:
            self.receive(message)
            # A request begins now, so that it sees the document as it was when it was sent.
            await asyncio.sleep(0)
            if self._is_stopped:
                return

    def stop(self) -> None:
        """Leave the main loop once the current message is handled."""
        self._is_stopped = True

    def begin(self, params: InitializeParams) -> None:
        """Take in what the client declares."""
        self.stage = "initialized"
        self.editor.capabilities = EditorCapabilities(params)
        self.session.statistics.observer.client = self.editor.capabilities.name
        self.configuration.begin(params.initialization_options)
        uris = [folder.uri for folder in params.workspace_folders or ()]
        if not uris and params.root_uri:
            uris = [params.root_uri]
        self.session.folders_changed(uris, ())
        self._log = ClientLog(asyncio.get_running_loop(), self.editor.log, self)

    async def start(self) -> None:
        """Once the client listens: register with it, ask for its settings and load the model."""
        asyncio.get_running_loop().run_in_executor(None, redaction.load_rules)
        self.editor.watch_settings()
        await self.configuration.update()

    def why_no_suggestions(self, uri: str) -> str | None:
        """Why nothing can be suggested in a document, "" for no document. Raises UnknownDocument."""
        if uri and (why := self.session.why_left_alone(uri)) is not None:
            return why
        status = self.status.current
        return status.message if status.kind in ("Error", "Inactive") else None

    @property
    def exit_code(self) -> int:
        """0 after shutdown, otherwise 1, as the protocol requires."""
        return 0 if self.stage == "shut down" else 1

    def close(self) -> None:
        """Stop without waiting: a thread may still be reading stdin or loading a model."""
        self._is_stopped = True
        self.cancel_all()
        self.configuration.close()
        if self._log is not None:
            self._log.close()
        self.session.close()


async def _messages(stdin: BinaryIO) -> AsyncIterator[Any]:
    """Messages of a pipe; a separate thread waits for them."""
    loop, queue, end = asyncio.get_running_loop(), asyncio.Queue[Any](), object()

    def listen() -> None:
        try:
            for message in framing.messages(lambda: stdin.read1(framing.READ_BYTES)):  # type: ignore[attr-defined]
                loop.call_soon_threadsafe(queue.put_nowait, message)
            loop.call_soon_threadsafe(queue.put_nowait, end)
        except RuntimeError as error:
            logger.debug("the event loop ended before its input: %s", error)

    Thread(target=listen, name="mercury-stdin", daemon=True).start()
    while (message := await queue.get()) is not end:
        yield message
