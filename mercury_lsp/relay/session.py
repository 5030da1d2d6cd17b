"""A client's session, as its messages describe it, so that another daemon can resume it."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mercury_lsp.daemon.control import GOODBYE
from mercury_lsp.documents.chunked_text import MAX_DOCUMENT_CHARS, ChunkedText

Message = dict[str, Any]

MAX_PENDING_CHANGES = 512
"""Most queued changes; further ones apply the queue."""

MAX_PENDING_CHARS = 2**11
"""Most inserted characters in a queued change; a longer one applies the queue."""

CONTENT_MODIFIED = -32801
"""Clients silently drop a request with this error, and repeat it on the next occasion."""

REQUEST_FAILED = -32803

RESUMED_ID = "mercury-relay-initialize"
"""Id of the repeated initialize request; its answer is not for the client."""

UNREGISTER_ID = "mercury-relay-unregister"
"""Id of the request that undoes the lost daemon's registrations; its answer is not for the daemon."""


_ENDS = ("start", "end")


class Mirror:
    """A cheap copy of an open document as the client has it: edits are queued and applied in batches."""

    def __init__(self, item: dict[str, Any]):
        """`item`: of `textDocument/didOpen`."""
        if not isinstance(item["text"], str):
            raise TypeError("a document's text is a string")
        self._item = item
        """With the text last sent as a whole."""
        self._source: ChunkedText | None = None
        """The text after changes; None before the first, because splitting a text into chunks is slow."""
        self._pending: list[dict[str, Any]] = []

    def change(self, version: Any, changes: list[dict[str, Any]]) -> None:
        """Queue content changes: all of them, or none if one or the version is malformed, as the server does."""
        if type(version) is not int or not all(map(_is_sound, changes)):
            return
        self._item = self._item | {"version": version}
        for each in changes:
            if each.get("range"):
                self._pending.append(each)
            else:
                self._item["text"], self._source, self._pending = each["text"], None, []
        is_long = any(len(each["text"]) > MAX_PENDING_CHARS for each in changes)
        if len(self._pending) > MAX_PENDING_CHANGES or is_long:
            self._apply()

    def item(self) -> dict[str, Any]:
        """The item that opens the document in its current state."""
        self._apply()
        return self._item if self._source is None else self._item | {"text": "".join(self._source.chunks)}

    def _apply(self) -> None:
        if self._source is None and len(self._item["text"]) > MAX_DOCUMENT_CHARS:
            self._pending = []  # the server applies no part of a document that long either
        for each in self._pending:
            source = ChunkedText.of(self._item["text"]) if self._source is None else self._source
            ends = [source.offset_at(each["range"][end]["line"], each["range"][end]["character"]) for end in _ENDS]
            start, end = min(ends), max(ends)
            self._source = source.replace(start, end, each["text"]) if start != end or each["text"] else source
        self._pending = []


class RelayedSession:
    """Observes every message of both sides, independently of their transport."""

    def __init__(self) -> None:
        self.was_shut_down = False
        """Whether the client may exit successfully."""
        self._initialize: Message | None = None
        self._initialized: Message | None = None
        self._configuration: Message | None = None
        self._documents: dict[str, Mirror] = {}
        self._notebooks: dict[str, Any] = {}
        self._folder_changes: list[Message] = []
        """Changes of folders since the last introduction."""
        self._pending: dict[Any, str] = {}
        """Methods of the client's unanswered requests, by id."""
        self._asked: set[Any] = set()
        """Ids of this daemon's requests that the client has not answered."""
        self._registered: dict[Any, Any] = {}
        """Methods that daemons registered with the client, by registration id."""
        self._shown: set[Any] = set()
        """Tokens of progress that has begun and not yet ended."""

    def hear_client(self, message: Message) -> bool:
        """Observe a message of the client; returns whether it is for the current daemon."""
        msg_id, method = message.get("id"), message.get("method")
        if not isinstance(method, str):
            is_wanted = not _is_key(msg_id) or msg_id in self._asked
            self._asked.discard(msg_id if _is_key(msg_id) else None)
            return is_wanted
        if _is_key(msg_id):
            self._pending[msg_id] = method
        elif method == "shutdown":  # as a notification, which gets no answer
            self.was_shut_down = True
        with suppress(KeyError, TypeError, AttributeError, ValueError):  # malformed: the server will report it
            self._keep(method, message)
        return True

    def hear_daemon(self, message: Message) -> bool:
        """Observe a message of the daemon; returns whether it is for the client."""
        msg_id, method = message.get("id"), message.get("method")
        if method is None:
            self.was_shut_down |= self._pending.pop(msg_id, None) == "shutdown" and "error" not in message
            if "error" in message and self._initialize is not None and msg_id == self._initialize["id"]:
                self._initialize = None
            return msg_id not in (RESUMED_ID, UNREGISTER_ID)
        if msg_id is not None:
            self._asked.add(msg_id)
        self._watch(method, message.get("params"))
        return method != GOODBYE

    def lose(self) -> Iterator[Message]:
        """The daemon is gone; returns the messages that end the client's waiting."""
        self._asked.clear()
        for msg_id in list(self._pending):
            if (answer := self.answer_alone(msg_id)) is not None:
                yield answer
        for token in self._shown:
            yield _notification("$/progress", {"token": token, "value": {"kind": "end", "message": "interrupted"}})
        self._shown.clear()

    def answer_alone(self, msg_id: Any) -> Message | None:
        """The answer to a request while there is no daemon; None if the request waits for the next one."""
        method = self._pending.get(msg_id) if _is_key(msg_id) else None
        if method in (None, "initialize"):
            return None
        del self._pending[msg_id]
        if method == "shutdown":
            self.was_shut_down = True
            return {"jsonrpc": "2.0", "id": msg_id, "result": None}
        error = {"code": CONTENT_MODIFIED, "message": "the server is restarting; ask again"}
        return {"jsonrpc": "2.0", "id": msg_id, "error": error}

    def refuse_introduction(self, reason: str) -> Message | None:
        """The error for a client that still waits for initialize; the client may then restart the server."""
        if self._initialize is None or self._initialize["id"] not in self._pending:
            return None
        msg_id = self._initialize["id"]
        del self._pending[msg_id]
        self._initialize = None
        return {"jsonrpc": "2.0", "id": msg_id, "error": {"code": REQUEST_FAILED, "message": reason}}

    def introduction(self) -> Message | None:
        """The first message for a new daemon, followed by `rest`; None if the client has not sent initialize yet."""
        self._folder_changes.clear()
        if self._initialize is None or self._initialize["id"] in self._pending:
            return self._initialize  # unanswered: the client gets this answer
        return self._initialize | {"id": RESUMED_ID}

    def rest(self) -> list[Message]:
        """The messages for a new daemon after the introduction; the client's next messages are for it."""
        notebooks, cells = list[Message](), set[str]()
        for notebook in self._notebooks.values():
            uris = [cell["document"] for cell in notebook["cells"] if cell["document"] in self._documents]
            items = [self._documents[uri].item() for uri in uris]
            opening = {"notebookDocument": notebook, "cellTextDocuments": items}
            notebooks.append(_notification("notebookDocument/didOpen", opening))
            cells.update(uris)
        opened = (
            _notification("textDocument/didOpen", {"textDocument": each.item()})
            for uri, each in self._documents.items()
            if uri not in cells
        )
        told = (each for each in (self._initialized, self._configuration) if each is not None)
        return [*told, *self._folder_changes, *notebooks, *opened]

    def unregistration(self) -> Message | None:
        """The request that undoes registrations, so that a new daemon can register; None if there were none."""
        if not self._registered:
            return None
        gone = [{"id": each, "method": method} for each, method in self._registered.items()]
        self._registered.clear()
        # The protocol misspells it.
        params = {"unregisterations": gone}
        return _notification("client/unregisterCapability", params) | {"id": UNREGISTER_ID}

    def _keep(self, method: str, message: Message) -> None:
        """Keep what a new daemon must be told."""
        params: Any = message.get("params")
        match method:
            case "initialize" if self._initialize is None:
                self._initialize = {**message, "id": message["id"], "params": dict(params)}
            case "initialized":
                self._initialized = message
            case "workspace/didChangeConfiguration":
                # Without settings the message only says that they changed; a new daemon requests them anyway.
                self._configuration = message if params.get("settings") is not None else None
            case "workspace/didChangeWorkspaceFolders" if self._initialize is not None:
                self._change_folders(self._initialize["params"], params["event"])
                self._folder_changes.append(message)
            case "textDocument/didOpen":
                self._open([params["textDocument"]])
            case "textDocument/didChange":
                self._change(params["textDocument"], params["contentChanges"])
            case "textDocument/didClose":
                self._close([params["textDocument"]])
            case "notebookDocument/didOpen":
                notebook = params["notebookDocument"]
                self._notebooks[notebook["uri"]] = notebook | {"cells": [*notebook["cells"]]}
                self._open(params["cellTextDocuments"])
            case "notebookDocument/didChange":
                self._change_notebook(params["notebookDocument"]["uri"], params["change"].get("cells") or {})
            case "notebookDocument/didClose":
                self._notebooks.pop(params["notebookDocument"]["uri"], None)
                self._close(params["cellTextDocuments"])

    def _open(self, items: list[dict[str, Any]]) -> None:
        self._documents |= {item["uri"]: Mirror(item) for item in items}

    def _change(self, document: dict[str, Any], changes: list[dict[str, Any]]) -> None:
        self._documents[document["uri"]].change(document["version"], changes)

    def _close(self, documents: list[dict[str, Any]]) -> None:
        for each in documents:
            self._documents.pop(each["uri"], None)

    def _change_notebook(self, uri: str, cells: dict[str, Any]) -> None:
        if structure := cells.get("structure"):
            array = structure["array"]
            kept = self._notebooks[uri]["cells"]
            kept[array["start"] : array["start"] + array["deleteCount"]] = array.get("cells") or []
            self._close(structure.get("didClose") or [])
            self._open(structure.get("didOpen") or [])
        for each in cells.get("textContent") or ():
            self._change(each["document"], each["changes"])

    @staticmethod
    def _change_folders(params: dict[str, Any], event: dict[str, Any]) -> None:
        """Change the folders in the parameters of initialize."""
        gone = {folder["uri"] for folder in event["removed"]}
        folders = params.get("workspaceFolders")
        if not folders and params.get("rootUri"):
            folders = [{"uri": params["rootUri"], "name": ""}]
        params["workspaceFolders"] = [each for each in folders or () if each["uri"] not in gone] + event["added"]
        params["rootUri"] = None

    def _watch(self, method: str, params: Any) -> None:
        """Remember what remains with the client when this daemon is gone."""
        match method:
            case "client/registerCapability":
                self._registered |= {each["id"]: each["method"] for each in params["registrations"]}
            case "client/unregisterCapability":
                for each in params["unregisterations"]:
                    self._registered.pop(each["id"], None)
            case "$/progress" if isinstance(params["value"], dict):
                if params["value"].get("kind") == "begin":
                    self._shown.add(params["token"])
                elif params["value"].get("kind") == "end":
                    self._shown.discard(params["token"])


def _is_key(msg_id: Any) -> bool:
    return isinstance(msg_id, int | str)


def _notification(method: str, params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def _is_sound(change: Any) -> bool:
    if not isinstance(change, dict) or not isinstance(change.get("text"), str):
        return False
    span = change.get("range")
    return span is None or (isinstance(span, dict) and all(_is_position(span.get(end)) for end in _ENDS))


def _is_position(position: Any) -> bool:
    return isinstance(position, dict) and all(
        type(position.get(axis)) is int and position[axis] >= 0 for axis in ("line", "character")
    )
