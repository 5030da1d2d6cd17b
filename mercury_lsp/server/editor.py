"""The editor at the other end of the connection: what it can do, and what the server says to it."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import PurePath
from typing import Any
from uuid import uuid4

from lsprotocol import types
from mercury_engine.model_folders import INSTALLED

from mercury_lsp.completion.suggestions import Position
from mercury_lsp.context.workspace import IGNORE_FILES, SOURCE_EXTENSIONS
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.errors import RpcError
from mercury_lsp.server.capabilities import EditorCapabilities
from mercury_lsp.server.connection import RpcConnection
from mercury_lsp.server.convert import to_range
from mercury_lsp.server.status import Status

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 2.0
"""For an editor to accept a progress, or to send its configuration."""

REFUSED = object()
"""The editor refused a request, or did not answer in time."""


class Editor:
    """Says only what the editor can take in."""

    def __init__(self, connection: RpcConnection):
        self.capabilities = EditorCapabilities()
        self.notify = connection.notify
        self._connection = connection
        self._applying: dict[str, ChunkedText] = {}
        """By uri, the text to which the editor is applying an edit."""
        self._work: dict[types.ProgressToken, asyncio.Task[Any] | None] = {}
        """By token, the work that is shown and may be cancelled."""
        self._shown_messages: set[str] = set()

    def show_message(self, kind: types.MessageType, message: str) -> None:
        """Show the user a message, each once per connection."""
        if message not in self._shown_messages:
            self._shown_messages.add(message)
            self.show_outcome(message, kind)

    def show_outcome(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show the user what became of something that they asked for."""
        self.notify(types.WINDOW_SHOW_MESSAGE, {"type": kind, "message": message})

    def log(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Write a line into the editor's log."""
        self.notify(types.WINDOW_LOG_MESSAGE, {"type": kind, "message": message})

    def show_status(self, status: Status) -> None:
        """Send the status in each form that the editor shows."""
        if self.capabilities.takes_status:
            self.notify("didChangeStatus", asdict(status))
        if self.capabilities.is_copilot:
            self.notify("statusNotification", status.to_status_notification())

    async def settings_section(self) -> Any:
        """The section `mercury` of the editor's configuration; None if it has none or does not answer."""
        if not self.capabilities.has_configuration:
            return None
        answer = await self._ask(types.WORKSPACE_CONFIGURATION, {"items": [{"section": "mercury"}]}, ANSWER_SECONDS)
        return answer[0] if isinstance(answer, list) and answer else None

    def watch_settings(self) -> None:
        """Have the editor report changed settings."""
        if self.capabilities.registers_configuration:
            self._register(types.WORKSPACE_DID_CHANGE_CONFIGURATION, "mercury-settings", {"section": "mercury"})

    def watch_source_files(self) -> None:
        """Have the editor report changes of source and ignore files."""
        patterns = [f"**/*.{{{','.join(sorted(SOURCE_EXTENSIONS))}}}", *(f"**/{name}" for name in IGNORE_FILES)]
        watchers = {"watchers": [{"globPattern": pattern} for pattern in patterns]}
        self._register(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, "mercury-source-files", watchers)

    async def apply(self, snapshot: Snapshot, edits: Sequence[tuple[Position, Position, str]], title: str) -> bool:
        """Have the editor replace ranges of this version of a document; returns whether it did.

        The later of two commands for the same text does nothing: both may have the same suggestion.
        """
        if self._applying.get(snapshot.uri) is snapshot.source:
            return False
        self._applying[snapshot.uri] = snapshot.source
        changes: list[dict[str, Any]] = [{"range": to_range(start, end), "newText": new} for start, end, new in edits]
        edit: dict[str, Any] = {"changes": {snapshot.uri: changes}}
        if self.capabilities.takes_versioned_edits:
            document = {"uri": snapshot.uri, "version": snapshot.version}
            edit = {"documentChanges": [{"textDocument": document, "edits": changes}]}
        try:
            answer = await self._ask(types.WORKSPACE_APPLY_EDIT, {"label": title, "edit": edit})
        finally:
            if self._applying.get(snapshot.uri) is snapshot.source:  # not that of a later command
                del self._applying[snapshot.uri]
        return isinstance(answer, Mapping) and answer.get("applied") is True

    async def go_to(self, uri: str, at: Position) -> None:
        """Have the editor put its cursor somewhere, if it can."""
        if self.capabilities.shows_documents:
            shown = {"uri": uri, "takeFocus": True, "selection": to_range(at, at)}
            await self._ask(types.WINDOW_SHOW_DOCUMENT, shown)

    @contextmanager
    def progress(
        self, token: types.ProgressToken | None, title: str, *, cancellable: bool = False
    ) -> Iterator[dict[str, str]]:
        """Shows progress while the block runs, and then the `message` that it has set; nothing without a token."""
        end = {"kind": "end"}
        if token is None:
            yield end
            return
        begin = {"kind": "begin", "title": title, "cancellable": cancellable}
        self.notify(types.PROGRESS, {"token": token, "value": begin})
        self._work[token] = asyncio.current_task() if cancellable else None
        try:
            yield end
        except BaseException:
            end["message"] = "cancelled"
            raise
        finally:
            self._work.pop(token, None)
            self.notify(types.PROGRESS, {"token": token, "value": end})

    def cancel_work(self, token: types.ProgressToken) -> None:
        """The user cancels work that is shown."""
        if (task := self._work.get(token)) is not None:
            task.cancel()

    async def new_token(self) -> str | None:
        """A token for progress that the server starts itself; None if the editor shows none."""
        token = uuid4().hex
        if not self.capabilities.shows_progress:
            return None
        answer = await self._ask(types.WINDOW_WORK_DONE_PROGRESS_CREATE, {"token": token}, ANSWER_SECONDS)
        return None if answer is REFUSED else token

    async def loading_progress(self, model: str | None, loading: "asyncio.Future[Any]") -> None:
        """Show that a model is loading, until that succeeds or fails."""
        name = PurePath(model.removeprefix(INSTALLED)).name if model else "the bundled model"
        with self.progress(await self.new_token(), f"Loading {name}") as work:
            await asyncio.wait([loading])
            failed = loading.cancelled() or loading.exception() is not None
            work["message"] = "failed" if failed else "ready"

    async def _ask(self, method: str, params: Any, seconds: float | None = None) -> Any:
        """The editor's answer as it is, or REFUSED."""
        try:
            async with asyncio.timeout(seconds):
                return await self._connection.request(method, params)
        except (TimeoutError, RpcError) as error:
            logger.warning("the client did not answer %s: %r", method, error)
            return REFUSED

    def _register(self, method: str, registration_id: str, options: Mapping[str, Any]) -> None:
        registration = {"id": registration_id, "method": method, "registerOptions": options}
        answer = self._connection.request("client/registerCapability", {"registrations": [registration]})
        answer.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # a refusal changes nothing
