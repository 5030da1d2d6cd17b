"""The editor at the other end of the connection: what it can do, and what the server says to it."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import PurePath
from typing import Any
from uuid import uuid4

import attrs
from lsprotocol import types
from mercury_engine.model_folders import INSTALLED

from mercury_lsp.completion.suggestions import Position
from mercury_lsp.context.workspace import IGNORE_FILES, SOURCE_EXTENSIONS
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.errors import RpcError
from mercury_lsp.server.connection import RpcConnection
from mercury_lsp.server.convert import to_range
from mercury_lsp.server.status import Status

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 2.0
"""For an editor to accept a progress, or to send its configuration."""

REFUSED = object()
"""The editor refused a request, or did not answer in time."""

COPILOT_OPTIONS = ("editorInfo", "editorPluginInfo")
"""Options sent by clients that were made for Copilot's language server."""


@attrs.define
class InitializeParams:
    """What is read of initialize. The capabilities stay JSON, because a malformed one must not lock a client out."""

    capabilities: Any = None
    client_info: types.ClientInfo | None = None
    initialization_options: Any = None
    root_uri: str | None = None
    workspace_folders: Sequence[types.WorkspaceFolder] | None = None


class EditorCapabilities:
    """What the client can do; nothing if it declares nothing."""

    def __init__(self, params: InitializeParams | None = None):
        params = params or InitializeParams()

        def declared(path: str) -> Any:
            found = params.capabilities
            for name in path.split("."):
                found = found.get(name) if isinstance(found, Mapping) else None
            return found

        def can(path: str) -> bool:
            return declared(path) is True

        def has(path: str) -> bool:
            return isinstance(declared(path), Mapping)

        def lists(path: str, value: Any) -> bool:
            found = declared(path)
            return isinstance(found, list) and value in found

        options, completion = params.initialization_options, "textDocument.completion"
        self.name = params.client_info.name if params.client_info else ""
        self.is_copilot = isinstance(options, Mapping) and any(key in options for key in COPILOT_OPTIONS)
        """It speaks Copilot's dialect: its options are not ours, and items start at the start of the line."""
        self.takes_status = self.is_copilot or self.name == "Neovim" or can("experimental.mercury.status")
        """It knows `didChangeStatus`, or drops unknown notifications silently."""
        # lsp-mode declares inline completion by a null; a client may also say false.
        inline = declared("textDocument").get("inlineCompletion", False) if has("textDocument") else False
        has_inline = inline is None or isinstance(inline, Mapping)
        self.wants_popup = has(completion) and not has_inline and not self.is_copilot
        """It has completion but no inline completion."""
        self.has_notebooks = has("notebookDocument")
        self.applies_edits = can("workspace.applyEdit")
        self.takes_actions = self.applies_edits and has("textDocument.codeAction")
        self.takes_action_literals = has("textDocument.codeAction.codeActionLiteralSupport")
        self.takes_versioned_edits = can("workspace.workspaceEdit.documentChanges")
        modes = f"{completion}.completionItem.insertTextModeSupport.valueSet"
        self.keeps_indentation = lists(modes, types.InsertTextMode.AsIs)
        """It inserts an item's lines unchanged if the item asks for that."""
        by_default = declared(f"{completion}.insertTextMode")
        self.adds_indentation = not self.keeps_indentation and by_default == types.InsertTextMode.AdjustIndentation
        """It does not: it indents all lines but the first like the line of insertion."""
        self.takes_markdown = lists(f"{completion}.completionItem.documentationFormat", types.MarkupKind.Markdown)
        # copilot.lua opens any document it is asked to show in a browser.
        self.shows_documents = can("window.showDocument.support") and not self.is_copilot
        self.shows_progress = can("window.workDoneProgress")
        self.has_configuration = can("workspace.configuration")
        self.registers_configuration = can("workspace.didChangeConfiguration.dynamicRegistration")
        self.registers_files = can("workspace.didChangeWatchedFiles.dynamicRegistration")
        # Only our own clients declare these.
        self.takes_confidence = can("experimental.mercury.confidence")
        """Items may carry the model's confidence."""
        self.takes_source = can("experimental.mercury.source")
        """Edits may name their source."""
        self.takes_edits_elsewhere = can("experimental.mercury.editsElsewhere")
        """It shows a next edit in another document than the one it asked about."""
        self.takes_offers = can("experimental.mercury.offers")
        """It can ask its user unobtrusively whether to download a larger model."""
        self.takes_denoising = can("experimental.mercury.denoising")
        """Each partial result replaces the one before."""
        self.takes_subtle = can("experimental.mercury.subtle")
        """It marks where there is a text, shows it by key, and reports that (`mercury.display`)."""


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
            kind = "Normal" if status.kind == "Inactive" else status.kind  # the older form has no inactive status
            older = {"status": "InProgress" if status.busy else kind, "message": status.message}
            self.notify("statusNotification", older)

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
