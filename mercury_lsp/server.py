"""The language server: state of one connection. The handlers of its messages are in `handlers.py`."""

import asyncio
import logging
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lsprotocol import types
from mercury_engine.errors import MercuryError
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from mercury_lsp.completer import Completer
from mercury_lsp.errors import SettingsError
from mercury_lsp.open_documents import OpenDocuments
from mercury_lsp.progress import loading_progress
from mercury_lsp.protocol import MercuryProtocol
from mercury_lsp.settings import Settings
from mercury_lsp.worker import LoadEngine, load_engine

logger = logging.getLogger(__name__)

CLIENT_ANSWERS_IN = 2.0
"""Seconds that a client has for telling its configuration before the model is loaded without it."""

PAUSE = 0.5
"""Seconds without an edit after which the user is taken to have stopped typing."""


class MercuryServer(LanguageServer):
    """Completes code in the documents of one client."""

    def __init__(self, load: LoadEngine = load_engine):
        super().__init__("mercury-lsp", version("mercury-lsp"), protocol_cls=MercuryProtocol)
        self.documents = OpenDocuments()
        self.completer = Completer(load)
        self._options: Any = None
        self._loaded: tuple[Any, ...] | None = None
        """What the engine was last loaded with; None before the first load."""
        self._settling: dict[str, asyncio.TimerHandle] = {}
        self._told: set[str] = set()

    def begin(self, params: types.InitializeParams) -> None:
        """Keep what the client says of itself; of its options the object `mercury` is ours, or all."""
        options = params.initialization_options or {}
        if isinstance(options, Mapping):
            options = options.get("mercury", options)
        self._options = options
        uris = [folder.uri for folder in params.workspace_folders or ()]
        if not uris and params.root_uri:
            uris = [params.root_uri]
        self.documents.roots = tuple(Path(path) for uri in uris if (path := to_fs_path(uri)))

    def settle_soon(self, uri: str) -> None:
        """Let the document finish its parsing once no edit has come for a while."""
        if timer := self._settling.pop(uri, None):
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._settling[uri] = loop.call_later(PAUSE, self.documents.settle, uri)

    async def reconfigure(self, pushed: Any = None) -> None:
        """Take over the settings the client pushed, or ask for them; reload the model if they name another.

        Wrong settings change nothing and are told to the user.
        """
        section = pushed.get("mercury") if isinstance(pushed, Mapping) else None
        if section is None:
            section = await self._pull()
        try:
            self.completer.settings = Settings.parse(_checked(self._options) | _checked(section))
        except SettingsError as error:
            self.tell(types.MessageType.Warning, f"Mercury: {error}. The settings stay as they were.")
        if self._loaded != self.completer.settings.engine:
            self._loaded = self.completer.settings.engine
            await self._load()

    @property
    def exit_code(self) -> int:
        """What the process is to end with."""
        assert isinstance(self.protocol, MercuryProtocol)
        return self.protocol.exit_code

    def shutdown(self) -> None:
        """Stop without waiting: a thread may still sit in a read of stdin or load a model."""
        self.completer.close()
        if self._thread_pool is not None:
            self._thread_pool.shutdown(wait=False, cancel_futures=True)

    def tell(self, kind: types.MessageType, message: str) -> None:
        """Show the user a message, each once per connection."""
        if message not in self._told:
            self._told.add(message)
            self.window_show_message(types.ShowMessageParams(kind, message))

    async def _load(self) -> None:
        loading = asyncio.ensure_future(self.completer.load())
        shown = asyncio.ensure_future(loading_progress(self, self.completer.settings.model, loading))
        try:
            engine = await loading
            logger.info("loaded %s on %s", engine.name, engine.device)
        except MercuryError as error:
            self.tell(types.MessageType.Error, f"Mercury cannot load its model: {error}")
        except Exception as error:
            logger.exception("loading failed")
            reason = f"{type(error).__name__}: {error}"
            self.tell(types.MessageType.Error, f"Mercury cannot load its model: {reason}; run mercury-lsp doctor")
        await shown

    async def _pull(self) -> Any:
        """The section `mercury` of the client's configuration; None if it has none or does not answer."""
        workspace = self.client_capabilities.workspace
        if workspace is None or not workspace.configuration:
            return None
        asked = types.ConfigurationParams([types.ConfigurationItem(section="mercury")])
        try:
            async with asyncio.timeout(CLIENT_ANSWERS_IN):
                answer = await self.workspace_configuration_async(asked)
        except (TimeoutError, JsonRpcException) as error:
            logger.warning("the client did not tell its configuration: %r", error)
            return None
        return answer[0] if answer else None


_ABOUT_THE_CLIENT = ("editorInfo", "editorPluginInfo")
"""Options of the Copilot dialect that are no settings."""


def _checked(section: Any) -> dict[str, Any]:
    if section is None:
        return {}
    if not isinstance(section, Mapping):
        raise SettingsError(f"mercury is {section!r}; allowed: an object")
    return {key: value for key, value in section.items() if key not in _ABOUT_THE_CLIENT}
