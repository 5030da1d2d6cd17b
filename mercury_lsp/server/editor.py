"""The editor at the other end of the connection: what it can do, and what the server says to it."""

import asyncio
import logging
from dataclasses import asdict
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from mercury_lsp.context.workspace import IGNORE_FILES, SOURCE_EXTENSIONS
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.server.capabilities import EditorCapabilities
from mercury_lsp.server.progress import CLIENT_ANSWER_SECONDS
from mercury_lsp.server.status import Status

logger = logging.getLogger(__name__)


class Editor:
    """Says only what the editor can take in."""

    def __init__(self, server: LanguageServer):
        self.server = server
        self.capabilities = EditorCapabilities()
        self.applying: dict[str, ChunkedText] = {}
        """By uri, the text to which the editor is applying an edit."""
        self._shown_messages: set[str] = set()

    def show_message(self, kind: types.MessageType, message: str) -> None:
        """Show the user a message, each once per connection."""
        if message not in self._shown_messages:
            self._shown_messages.add(message)
            self.server.window_show_message(types.ShowMessageParams(kind, message))

    def log(self, message: str) -> None:
        """Write a line into the editor's log."""
        self.server.window_log_message(types.LogMessageParams(types.MessageType.Info, message))

    def show_status(self, status: Status) -> None:
        """Send the status in each form that the editor shows."""
        if self.capabilities.takes_status:
            self.server.protocol.notify("didChangeStatus", asdict(status))
        if self.capabilities.is_copilot:
            self.server.protocol.notify("statusNotification", status.to_status_notification())

    async def settings_section(self) -> Any:
        """The section `mercury` of the editor's configuration; None if it has none or does not answer."""
        if not self.capabilities.has_configuration:
            return None
        asked = types.ConfigurationParams([types.ConfigurationItem(section="mercury")])
        try:
            async with asyncio.timeout(CLIENT_ANSWER_SECONDS):
                answer = await self.server.workspace_configuration_async(asked)
        except (TimeoutError, JsonRpcException) as error:
            logger.warning("the client did not send its configuration: %r", error)
            return None
        return answer[0] if answer else None

    def watch_settings(self) -> None:
        """Have the editor report changed settings."""
        if self.capabilities.registers_configuration:
            options = types.DidChangeConfigurationRegistrationOptions(section="mercury")
            self._register("mercury-settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)

    def watch_source_files(self) -> None:
        """Have the editor report changes of source and ignore files."""
        patterns = [f"**/*.{{{','.join(sorted(SOURCE_EXTENSIONS))}}}", *(f"**/{name}" for name in IGNORE_FILES)]
        watchers = [types.FileSystemWatcher(pattern) for pattern in patterns]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        self._register("mercury-source-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)

    def _register(self, registration_id: str, method: str, options: Any) -> None:
        registration = types.Registration(registration_id, method, options)
        self.server.client_register_capability(types.RegistrationParams([registration]))
