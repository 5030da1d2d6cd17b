"""A small editor: it starts a language server and talks to it over stdio, one message at a time."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from mercury_lsp.errors import UsageError
from mercury_lsp.transport.framing import framed


class Client:
    """One server process; a context manager that shuts it down as the protocol requires."""

    def __init__(self, command: Sequence[str]):
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._last_id = 0
        self.messages: list[str] = []
        """Messages that the server showed the user."""
        self.log: list[str] = []
        """Messages that the server logged at the client."""
        self.applied: list[dict[str, Any]] = []
        """Workspace edits that the server asked for; none is made."""
        self.shown: list[dict[str, Any]] = []
        """Documents, and places in them, that the server asked to show."""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.request("shutdown", None)
            self.notify("exit", None)
        self._process.wait()

    @property
    def model(self) -> str:
        """The name of the loaded model, from the log; "unknown" before the first question."""
        loaded = [line.removeprefix("loaded ") for line in self.log if line.startswith("loaded ")]
        return loaded[-1].rpartition(" on ")[0] if loaded else "unknown"

    def initialize(
        self, settings: Mapping[str, Any], capabilities: Mapping[str, Any], folders: Sequence[Any] = ()
    ) -> None:
        """Connect with these settings (docs/settings.md); nothing is counted as usage."""
        own = {"mercury": {"statistics": False, "waitForContext": True, **settings}}
        about = {"processId": None, "rootUri": None, "workspaceFolders": [*folders], "capabilities": capabilities}
        self.request("initialize", about | {"initializationOptions": own})
        self.notify("initialized", {})

    def request(self, method: str, params: Any) -> Any:
        """Ask and wait for the answer. Raises UsageError if the server answers with an error."""
        self._last_id += 1
        self.send({"id": self._last_id, "method": method, "params": params})
        while True:
            message = self.receive()
            if "method" in message:
                self._serve(message)
            elif message["id"] == self._last_id:
                if "error" in message:
                    raise UsageError(f"the server refused {method}: {message['error']['message']}")
                return message.get("result")

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self.send({"method": method, "params": params})

    def _serve(self, message: dict[str, Any]) -> None:
        if message["method"] == "window/showMessage":
            self.messages.append(message["params"]["message"])
        if message["method"] == "window/logMessage":
            self.log.append(message["params"]["message"])
        result: object = None
        if message["method"] == "workspace/applyEdit":
            self.applied.append(message["params"])
            result = {"applied": False}
        elif message["method"] == "window/showDocument":
            self.shown.append(message["params"])
            result = {"success": True}
        if "id" in message:
            self.send({"id": message["id"], "result": result})

    def send(self, message: dict[str, Any]) -> None:
        """Write one JSON-RPC message."""
        assert self._process.stdin is not None
        self._process.stdin.write(framed({"jsonrpc": "2.0"} | message))
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Read one JSON-RPC message. Raises UsageError if the server has ended."""
        assert self._process.stdout is not None
        length = 0
        while (line := self._process.stdout.readline()).strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            raise UsageError("the server ended; see its messages above")
        return json.loads(self._process.stdout.read(length))
