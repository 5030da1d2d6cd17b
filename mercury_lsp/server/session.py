"""The language server: state of one connection. The handlers of its messages are in `requests/`."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from lsprotocol import types
from mercury_engine.api import OnStep
from mercury_engine.errors import Cancelled, MercuryError
from pygls.exceptions import JsonRpcException
from pygls.io_ import StdoutWriter
from pygls.lsp.server import LanguageServer

from mercury_lsp.completion.coalescing import Feature
from mercury_lsp.completion.completer import Completer
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.context.lookup_text import LookupText
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.context.workspace import Workspace, is_secret
from mercury_lsp.debounce import Debounced
from mercury_lsp.documents import redaction
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.uris import path_of
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.errors import SettingsError
from mercury_lsp.server import registrations
from mercury_lsp.server.capabilities import EditorCapabilities
from mercury_lsp.server.logs import ClientLog, spoken_for
from mercury_lsp.server.progress import loading_progress
from mercury_lsp.server.protocol import MercuryProtocol
from mercury_lsp.server.status import LOADING, Status, StatusBoard
from mercury_lsp.server.structuring import converter
from mercury_lsp.settings import Settings, section_of
from mercury_lsp.statistics import Statistics
from mercury_lsp.transport.stdin import messages

logger = logging.getLogger(__name__)

CLIENT_ANSWERS_IN = 2.0
"""Seconds that a client has for telling its configuration before the model is loaded without it."""

PAUSE = 0.5
"""Seconds without an edit after which the user is taken to have stopped typing."""

INDEX_EVERY = 0.002
"""Seconds between slices of indexing, each of about a millisecond."""

QUIET = 1.0
"""Seconds without a change of the model's files after which they are taken to be whole."""


class MercuryServer(LanguageServer):
    """Completes code in the documents of one client."""

    protocol: MercuryProtocol

    def __init__(self, engines: Engines):
        super().__init__(
            "mercury-lsp", version("mercury-lsp"), protocol_cls=MercuryProtocol, converter_factory=converter
        )
        self.documents = OpenDocuments()
        self.completer = Completer(engines)
        self.statistics = Statistics()
        self.other_files = Workspace(self.documents)
        self.lookup_text = LookupText()
        self._indexing: asyncio.TimerHandle | None = None
        self.editor = EditorCapabilities()
        self.status = StatusBoard(self._show_status)
        self.model_folder: Path | None = None
        """Whose files the client watches."""
        self.started_in: Path | None = None
        """Where the editor was started, if that is not our own working folder: a relative `model` counts from there."""
        self.applying: dict[str, ChunkedText] = {}
        """By uri, the text for which the client is asked to apply an edit."""
        self._folders: dict[str, Path] = {}
        self._options: Any = None
        self._loaded: tuple[Any, ...] | None = None
        """What the engine was last loaded with; None before the first load."""
        self._settling: dict[str, Debounced] = {}
        self._reloading = Debounced(lambda: asyncio.ensure_future(self._load(anew=True)))
        self._told: set[str] = set()
        self._stopped = False
        self._watches_sources = False
        self._log: ClientLog | None = None

    def start_io(self, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None) -> None:
        """Serve one client until it sends exit or closes the pipe."""
        self.protocol.set_writer(StdoutWriter(stdout or sys.stdout.buffer))
        try:
            asyncio.run(self.serve(messages(stdin or sys.stdin.buffer)))
        except KeyboardInterrupt:
            pass
        finally:
            self.shutdown()
            self.statistics.wait()

    async def serve(self, messages: AsyncIterator[Any]) -> None:
        """Handle what the client sends until it sends exit or there is no more."""
        spoken_for.set(self)
        async for message in messages:
            self.protocol.receive(message)
            # A request begins now, so that it sees the document as it was when it was sent.
            await asyncio.sleep(0)
            if self._stopped:
                return

    def stop(self) -> None:
        """Leave the main loop once the message is handled that asks for it."""
        self._stopped = True

    def begin(self, params: types.InitializeParams) -> None:
        """Keep what the client says of itself; of its options the object `mercury` is ours, or all."""
        self.editor = EditorCapabilities.of(params)
        self.statistics.observer.client = self.editor.name
        self.protocol.trace = params.trace or types.TraceValue.Off
        options = params.initialization_options
        if isinstance(options, Mapping):
            options = options.get("mercury", None if self.editor.is_copilot else options)
        self._options = options
        uris = [folder.uri for folder in params.workspace_folders or ()]
        if not uris and params.root_uri:
            uris = [params.root_uri]
        self.change_folders(uris, ())
        self._log = ClientLog(asyncio.get_running_loop(), self.window_log_message, self)
        self._log.attach()

    def change_folders(self, added: list[str], removed: list[str] | tuple[str, ...]) -> None:
        """Take note of the workspace's folders, by uri."""
        for uri in removed:
            self._folders.pop(uri, None)
        self._folders |= {uri: path for uri in added if (path := path_of(uri)) is not None}
        self.documents.roots = tuple(self._folders.values())
        self.other_files.change(self.documents.roots)

    def settle_soon(self, uri: str) -> None:
        """Let the document finish its parsing once no edit has come for a while."""
        if uri not in self._settling:
            self._settling[uri] = Debounced(partial(self._settle, uri))
        self._settling[uri].put_off(PAUSE)

    async def start(self) -> None:
        """The client listens now: register with it, ask for its settings and load the model."""
        asyncio.get_running_loop().run_in_executor(None, redaction.load_rules)
        if self.editor.registers_configuration:
            self.client_register_capability(registrations.settings())
        await self.reconfigure()

    async def reconfigure(self, pushed: Any = None) -> None:
        """Take over the settings the client pushed, or ask for them; reload the model if they name another.

        Wrong settings change nothing and are told to the user.
        """
        section = pushed.get("mercury") if isinstance(pushed, Mapping) else None
        if section is None:
            section = await self._pull()
        try:
            settings = Settings.parse(section_of(self._options) | section_of(section))
            self.completer.settings = settings.seen_from(self.started_in)
        except SettingsError as error:
            self.tell(types.MessageType.Warning, f"Mercury: {error}. The settings stay as they were.")
        else:  # not before the settings are known, for they may say no
            self.statistics.observer.switch(self.completer.settings.statistics)
        self.status.change(enabled=self.completer.settings.enabled)
        self._look_around()
        if self._loaded != self.completer.settings.engine:
            self._loaded = self.completer.settings.engine
            self._watch_model()
            await self._load()

    async def suggest(
        self, uri: str, at: types.Position, feature: Feature, automatic: bool, on_step: OnStep | None = None
    ) -> tuple[list[Suggestion], Snapshot]:
        """Suggestions at a place of a document as it is now, and that document; several if asked for.

        `feature` shows them; `automatic`: the editor asked by itself. `on_step` sees the denoising. When the engine
        fails there are none, and the user is told once. Raises UnknownDocument and Cancelled.
        """
        context, snapshot = self.documents.context_at(uri, at)
        if _is_secret(uri):
            return [], snapshot
        asked = self.statistics.observer.requested(uri, context.offset, context.language_id, automatic)
        context = self.other_files.with_snippets(context, snapshot)
        context = self.lookup_text.add_to(context, snapshot, self.other_files.offered(uri))
        if self.lookup_text.pending:
            self._index_soon()
        found = await self._answer(self.completer.complete(context, snapshot, automatic, on_step, feature))
        if found is None:
            return [], snapshot
        if not automatic:
            found = [each for first in found for each in (first, first.first_line()) if each is not None]
        self.statistics.observer.answered(asked, found)
        return found, snapshot

    async def next_edit(
        self, uri: str, feature: Feature, at: types.Position | None = None
    ) -> tuple[list[Suggestion], Snapshot]:
        """The last change for one more place of a document as it is now, if any, and that document.

        `at` is the cursor's place if the editor asked by itself; who asks by key waits for the parse of a large file.
        `feature`, failures and what is raised are as for `suggest`. It is not counted.
        """
        if at is None:
            self.documents.finish_parsing(uri)
        snapshot = self.documents.parsed(uri)
        if not self._allows_next_edits(snapshot):
            return [], snapshot
        path, cursor = self.documents.path(uri), None if at is None else snapshot.offset_at(at.line, at.character)
        found = await self._answer(self.completer.next_edits.find(snapshot, path, feature, cursor))
        return (found or []) if self.is_current(snapshot) else [], snapshot

    def is_current(self, snapshot: Snapshot) -> bool:
        """Whether its text is still that of the open document."""
        return snapshot.uri in self.documents and self.documents.snapshot(snapshot.uri).source is snapshot.source

    def has_next_edits(self, snapshot: Snapshot) -> bool:
        """Whether there is a place to ask the model about, as far as settings and rules say."""
        return self._allows_next_edits(snapshot) and self.completer.next_edits.has_candidates(snapshot)

    def _allows_next_edits(self, snapshot: Snapshot) -> bool:
        settings = self.completer.settings
        return settings.next_edits and settings.allows(snapshot.language_id) and not _is_secret(snapshot.uri)

    async def _answer(self, asking: Coroutine[Any, Any, list[Suggestion]]) -> list[Suggestion] | None:
        """What the completer finds; None when the engine fails, of which the user is told once. Raises Cancelled."""
        try:
            with self.status.busy():
                return await asking
        except Cancelled:
            raise
        except Exception as error:
            logger.exception("a fill failed")
            named = str(error) if isinstance(error, MercuryError) else f"{type(error).__name__}: {error}"
            self.tell(types.MessageType.Error, f"Mercury: {named}; run mercury-lsp doctor")
            return None

    def files_changed(self, paths: list[Path]) -> None:
        """Load the model anew once its files stay as they are; the workspace reads its own when they are needed."""
        self.other_files.files_changed(paths)
        if registrations.is_among(self.model_folder, paths):
            self._reloading.put_off(QUIET)

    @property
    def exit_code(self) -> int:
        """What the process is to end with."""
        return self.protocol.exit_code

    def shutdown(self) -> None:
        """Stop without waiting: a thread may still sit in a read of stdin or load a model."""
        self._stopped = True
        for later in (*self._settling.values(), self._reloading):
            later.cancel()
        if self._log is not None:
            self._log.detach()
        self.other_files.close()
        self.completer.close()
        self.statistics.close()

    def tell(self, kind: types.MessageType, message: str) -> None:
        """Show the user a message, each once per connection."""
        if message not in self._told:
            self._told.add(message)
            self.window_show_message(types.ShowMessageParams(kind, message))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Nothing: pygls has logged it, and what a client sends wrongly is not for its user to read."""

    def _settle(self, uri: str) -> None:
        self._settling.pop(uri, None)
        if uri not in self.documents or _is_secret(uri):  # closed meanwhile
            return
        self.documents.finish_parsing(uri)
        self.other_files.prepare(uri)
        snapshot = self.documents.snapshot(uri)
        self.completer.drafts.update(snapshot)
        self.lookup_text.update(snapshot)
        self._index_soon()

    def _index_soon(self) -> None:
        """Go on looking at what drafts and repeats may come from, a slice after whatever else is to do."""
        if self._indexing is None and not self._stopped:
            self._indexing = asyncio.get_running_loop().call_later(INDEX_EVERY, self._index)

    def _index(self) -> None:
        self._indexing = None
        if not self._stopped and (self.completer.drafts.work() or self.lookup_text.work()):
            self._index_soon()

    async def _load(self, anew: bool = False) -> None:
        settings = self.completer.settings
        self.status.change(LOADING)
        loading = asyncio.ensure_future(self.completer.load(anew))
        shown = asyncio.ensure_future(loading_progress(self, settings.model, loading))
        try:
            engine = await loading
            self.statistics.observer.model = engine.name
            self.window_log_message(
                types.LogMessageParams(types.MessageType.Info, f"loaded {engine.name} on {engine.device}")
            )
            self.status.change(Status())
        except Exception as error:
            reason = str(error)
            if not isinstance(error, MercuryError):
                logger.exception("loading failed")
                reason = f"{type(error).__name__}: {error}; run mercury-lsp doctor"
            self.tell(types.MessageType.Error, f"Mercury cannot load its model: {reason}")
            self.status.change(Status("Error", message=reason))
        await shown

    async def _pull(self) -> Any:
        """The section `mercury` of the client's configuration; None if it has none or does not answer."""
        if not self.editor.has_configuration:
            return None
        asked = types.ConfigurationParams([types.ConfigurationItem(section="mercury")])
        try:
            async with asyncio.timeout(CLIENT_ANSWERS_IN):
                answer = await self.workspace_configuration_async(asked)
        except (TimeoutError, JsonRpcException) as error:
            logger.warning("the client did not tell its configuration: %r", error)
            return None
        return answer[0] if answer else None

    def _look_around(self) -> None:
        """Look at other files of the workspace, or at none, as the settings have it."""
        is_wanted = self.completer.settings.workspace_context
        if is_wanted and self._folders and self.editor.registers_files and not self._watches_sources:
            self._watches_sources = True
            self.client_register_capability(registrations.source_files())
        self.other_files.enable(is_wanted, client_watches=self._watches_sources)

    def _watch_model(self) -> None:
        """Have the client tell of changes in the model's folder, if it is one."""
        if not self.editor.registers_files:
            return
        if self.model_folder is not None:
            self.client_unregister_capability(registrations.no_model_files())
        model = self.completer.settings.model
        folder = Path(model).expanduser().absolute() if model else None
        self.model_folder = folder if folder is not None and folder.is_dir() else None
        if self.model_folder is not None:
            self.client_register_capability(
                registrations.model_files(self.model_folder, self.editor.takes_relative_patterns)
            )

    def _show_status(self, status: Status) -> None:
        if self.editor.takes_status:
            self.protocol.notify("didChangeStatus", status.to_lsp())
        if self.editor.is_copilot:
            self.protocol.notify("statusNotification", status.to_older())


@lru_cache  # asked at every key; a path is a dear thing to make
def _is_secret(uri: str) -> bool:
    """Whether a document is a file of secrets, of which the model sees nothing."""
    path = path_of(uri)
    return path is not None and is_secret(path)
