"""What a client has said and still waits for: enough to take its session up again with another daemon."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from mercury_lsp.daemon.handshake import GOODBYE
from mercury_lsp.relay.mirror import Mirror

Message = dict[str, Any]

CONTENT_MODIFIED = -32801
"""Clients drop a request that was answered so without a word, and ask again at the next occasion."""

REQUEST_FAILED = -32803

RESUMED = "mercury-relay-initialize"
"""The id of the initialize request that we repeat; its answer is not for the client."""

TAKEN_BACK = "mercury-relay-unregister"


class Session:
    """Sees every message of both sides; knows nothing of how they travel."""

    def __init__(self) -> None:
        self.was_shut_down = False
        """Whether the client may exit with success."""
        self._initialize: Message | None = None
        self._initialized: Message | None = None
        self._configuration: Message | None = None
        self._documents: dict[str, Mirror] = {}
        self._pending: dict[Any, str] = {}
        """Methods of the requests that the client waits for, by id."""
        self._answered: set[Any] = set()
        """Ids of requests that were answered although the daemon still may."""
        self._asked: set[Any] = set()
        """Ids of what this daemon asked of the client, which has not answered yet."""
        self._registered: dict[Any, Any] = {}
        """Methods that daemons had the client tell of, by id of the registration."""
        self._shown: set[Any] = set()
        """Tokens of progress that was begun and is not ended."""

    def hear_client(self, message: Any) -> bool:
        """Take note of a message of the client; whether it is meant for the daemon that is there now."""
        if not isinstance(message, dict):
            return True
        msg_id, method = message.get("id"), message.get("method")
        if not isinstance(method, str):
            is_wanted = not _is_key(msg_id) or msg_id in self._asked
            self._asked.discard(msg_id if _is_key(msg_id) else None)
            return is_wanted
        if _is_key(msg_id):
            self._pending[msg_id] = method
        elif method == "shutdown":  # from a client that waits for no answer
            self.was_shut_down = True
        if (listen := self._LISTENERS.get(method)) is not None:
            with suppress(KeyError, TypeError, AttributeError, ValueError):  # malformed: the server will say so
                listen(self, message)
        return True

    def hear_daemon(self, message: Any) -> bool:
        """Take note of a message of the daemon; whether it is meant for the client."""
        if not isinstance(message, dict):
            return True
        msg_id, method = message.get("id"), message.get("method")
        if method is None:
            if _is_key(msg_id) and msg_id in self._answered:
                self._answered.discard(msg_id)
                return False
            answered = self._pending.pop(msg_id, None) if _is_key(msg_id) else None
            self.was_shut_down |= answered == "shutdown" and "error" not in message
            if "error" in message and self._initialize is not None and msg_id == self._initialize["id"]:
                self._initialize = None
            return msg_id not in (RESUMED, TAKEN_BACK)
        if _is_key(msg_id):
            self._asked.add(msg_id)
        self._watch(method, message.get("params"))
        return method != GOODBYE

    def lose(self) -> Iterator[Message]:
        """The daemon is gone: what the client is to be told, so that it waits for nothing any more."""
        self._asked.clear()
        self._answered.clear()
        for msg_id in list(self._pending):
            if (answer := self.answer_alone(msg_id)) is not None:
                yield answer
        for token in self._shown:
            yield _notification("$/progress", {"token": token, "value": {"kind": "end", "message": "interrupted"}})
        self._shown.clear()

    def answer_alone(self, msg_id: Any) -> Message | None:
        """The answer to a request while there is no daemon; None for one that waits for the next daemon."""
        method = self._pending.get(msg_id) if _is_key(msg_id) else None
        if method in (None, "initialize"):
            return None
        del self._pending[msg_id]
        if method == "shutdown":
            self.was_shut_down = True
            return {"jsonrpc": "2.0", "id": msg_id, "result": None}
        error = {"code": CONTENT_MODIFIED, "message": "the server is being started again; ask once more"}
        return {"jsonrpc": "2.0", "id": msg_id, "error": error}

    def answer_for_daemon(self, msg_id: Any) -> Message | None:
        """The same while there is one that takes too long; what it says later is not for the client any more."""
        if (answer := self.answer_alone(msg_id)) is not None:
            self._answered.add(msg_id)
        return answer

    def refuse_introduction(self, reason: str) -> Message | None:
        """The answer to a client that still waits for that of initialize and would for long; it may start us anew."""
        if self._initialize is None or self._initialize["id"] not in self._pending:
            return None
        msg_id = self._initialize["id"]
        del self._pending[msg_id]
        self._initialize = None
        return {"jsonrpc": "2.0", "id": msg_id, "error": {"code": REQUEST_FAILED, "message": reason}}

    def introduction(self) -> Message | None:
        """What a new daemon hears first; None if the client has not introduced itself yet."""
        if self._initialize is None or self._initialize["id"] in self._pending:
            return self._initialize  # the client still waits for the answer
        return self._initialize | {"id": RESUMED}

    def rest(self) -> Iterator[Message]:
        """What a new daemon hears once it has answered the introduction."""
        if self._initialized is None:
            return
        yield self._initialized
        if self._configuration is not None:
            yield self._configuration
        for document in self._documents.values():
            yield _notification("textDocument/didOpen", {"textDocument": document.item()})

    def taken_back(self) -> Message | None:
        """What the client hears so that a new daemon can register anew; None if nothing was registered."""
        if not self._registered:
            return None
        gone = [{"id": each, "method": method} for each, method in self._registered.items()]
        self._registered.clear()
        # The protocol itself spells it so.
        params = {"unregisterations": gone}
        return _notification("client/unregisterCapability", params) | {"id": TAKEN_BACK}

    def _hear_initialize(self, message: Message) -> None:
        if self._initialize is None:
            self._initialize = {**message, "id": message["id"], "params": dict(message["params"])}

    def _hear_initialized(self, message: Message) -> None:
        self._initialized = message

    def _hear_configuration(self, message: Message) -> None:
        # Without settings it only says that they are to be asked for, which a new daemon does anyway.
        self._configuration = message if message["params"].get("settings") is not None else None

    def _hear_folders(self, message: Message) -> None:
        if self._initialize is None:
            return
        params, event = self._initialize["params"], message["params"]["event"]
        gone = {folder["uri"] for folder in event["removed"]}
        folders = params.get("workspaceFolders")
        if not folders and params.get("rootUri"):
            folders = [{"uri": params["rootUri"], "name": ""}]
        params["workspaceFolders"] = [each for each in folders or () if each["uri"] not in gone] + event["added"]
        params["rootUri"] = None

    def _hear_trace(self, message: Message) -> None:
        if self._initialize is not None:
            self._initialize["params"]["trace"] = message["params"]["value"]

    def _hear_open(self, message: Message) -> None:
        item = message["params"]["textDocument"]
        self._documents[item["uri"]] = Mirror(item)

    def _hear_change(self, message: Message) -> None:
        document = message["params"]["textDocument"]
        self._documents[document["uri"]].change(document["version"], message["params"]["contentChanges"])

    def _hear_close(self, message: Message) -> None:
        del self._documents[message["params"]["textDocument"]["uri"]]

    _LISTENERS: dict[str, Callable[["Session", Message], None]] = {  # noqa: RUF012 - read only
        "initialize": _hear_initialize,
        "initialized": _hear_initialized,
        "workspace/didChangeConfiguration": _hear_configuration,
        "workspace/didChangeWorkspaceFolders": _hear_folders,
        "$/setTrace": _hear_trace,
        "textDocument/didOpen": _hear_open,
        "textDocument/didChange": _hear_change,
        "textDocument/didClose": _hear_close,
    }

    def _watch(self, method: str, params: Any) -> None:
        """Remember what a daemon leaves behind with the client when it is gone."""
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
