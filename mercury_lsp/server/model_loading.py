"""Loads the model that the settings name, and loads it again when its files change."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

from lsprotocol import types
from mercury_engine.errors import MercuryError
from mercury_engine.model_folders import is_path

from mercury_lsp.debounce import Debounced
from mercury_lsp.engine_host.stalled_disk import answered
from mercury_lsp.errors import SettingsError
from mercury_lsp.server import registrations
from mercury_lsp.server.editor import Editor
from mercury_lsp.server.progress import loading_progress
from mercury_lsp.server.session import Session
from mercury_lsp.server.status import LOADING, Status, StatusBoard
from mercury_lsp.settings import EngineKey, Settings

logger = logging.getLogger(__name__)

MODEL_FILES_QUIET_SECONDS = 1.0
"""Seconds without a change of the model's files after which they are taken to be complete."""


class ModelLoading:
    """The model of one session; failures are shown to the user, not raised."""

    def __init__(self, session: Session, editor: Editor, status: StatusBoard):
        self._session, self._editor, self._status = session, editor, status
        self._loaded: EngineKey | None = None
        """What the engine was last loaded with; None before the first load."""
        self._watched_folder: Path | None = None
        """The model's folder, if the editor watches it."""
        self._reloading = Debounced(lambda: asyncio.ensure_future(self._load(reload=True)))

    async def use(self, settings: Settings) -> None:
        """Load the model that the settings name, unless it is the one in use."""
        if self._loaded != settings.engine_key:
            self._loaded = settings.engine_key
            await self._watch(settings.model)
            await self._load()

    def files_changed(self, paths: list[Path]) -> None:
        """Load the model again once its files no longer change, if these are among them."""
        if registrations.is_among(self._watched_folder, paths):
            self._reloading.postpone(MODEL_FILES_QUIET_SECONDS)

    def close(self) -> None:
        """Load no more."""
        self._reloading.cancel()

    async def _load(self, reload: bool = False) -> None:
        completer = self._session.completer
        self._status.change(LOADING)
        loading = asyncio.ensure_future(completer.load(reload))
        shown = asyncio.ensure_future(loading_progress(self._editor.server, completer.settings.model, loading))
        try:
            engine = await loading
            self._editor.log(f"loaded {engine.name} on {engine.device}")
            self._status.change(Status())
        except Exception as error:
            reason = str(error)
            if not isinstance(error, MercuryError):
                logger.exception("loading failed")
                reason = f"{type(error).__name__}: {error}; run mercury-lsp doctor"
            self._editor.show_message(types.MessageType.Error, f"Mercury cannot load its model: {reason}")
            self._status.change(Status("Error", message=reason))
        await shown

    async def _watch(self, model: str | None) -> None:
        """Have the editor report changes in the model's folder, if the model is one."""
        if not self._editor.capabilities.registers_files:
            return
        if self._watched_folder is not None:
            self._editor.unwatch_model_files()
        folder, self._watched_folder = (Path(model).expanduser() if model and is_path(model) else None), None
        if folder is not None:
            with suppress(SettingsError):  # loading will report it
                self._watched_folder = folder if await answered(folder.is_dir, str(folder)) else None
        if self._watched_folder is not None:
            self._editor.watch_model_files(self._watched_folder)
