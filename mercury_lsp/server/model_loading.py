"""Loads the model that the settings name."""

import asyncio
import logging

from lsprotocol import types
from mercury_engine.errors import MercuryError

from mercury_lsp.server.editor import Editor
from mercury_lsp.server.progress import loading_progress
from mercury_lsp.server.session import Session
from mercury_lsp.server.status import LOADING, Status, StatusBoard
from mercury_lsp.settings import EngineKey, Settings

logger = logging.getLogger(__name__)


class ModelLoading:
    """The model of one session; failures are shown to the user, not raised."""

    def __init__(self, session: Session, editor: Editor, status: StatusBoard):
        self._session, self._editor, self._status = session, editor, status
        self._loaded: EngineKey | None = None
        """What the engine was last loaded with; None before the first load."""
        edit_engine = session.completer.edit_engine
        edit_engine.log = editor.log
        edit_engine.tell = lambda text: editor.show_message(types.MessageType.Warning, f"Mercury: {text}")

    async def use(self, settings: Settings) -> None:
        """Load the model that the settings name, unless it is the one in use."""
        if self._loaded == settings.engine_key:
            return
        self._loaded = settings.engine_key
        completer = self._session.completer
        self._status.change(LOADING)
        loading = asyncio.ensure_future(completer.load())
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
