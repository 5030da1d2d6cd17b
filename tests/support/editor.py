"""A small LSP client for tests: sends messages, or raw bytes, and keeps everything that comes back."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from tests.support import warm

HERE = Path(__file__).parent

WARM = [sys.executable, "-I", "-S", str(HERE / "warm_start.py")]
"""Runs a script in a fork of a process that has imported the server already."""

COMMAND = [*(WARM if warm.POSSIBLE else [sys.executable]), str(HERE / "fake_server.py")]

PATIENCE = 300
"""Seconds until a test gives up waiting; only a hanging server takes that long."""

INLINE = "textDocument/inlineCompletion"


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, error: dict[str, Any]):
        super().__init__(error["message"])
        self.code, self.message = error["code"], error["message"]


class Editor:
    """A server process and its messages; `answers` answers its requests, by method, and `ids` numbers ours."""

    def __init__(
        self,
        answers: dict[str, Callable[[Any], Any]] | None = None,
        command: Sequence[str] = COMMAND,
        ids: Iterator[Any] | None = None,
        **process: Any,
    ):
        self.answers = answers or {}
        self.notices: list[tuple[str, Any]] = []
        """The server's notifications and requests: method and parameters."""
        self.questions: list[tuple[str, Any]] = []
        """The server's requests: method and id."""
        self.replies: dict[Any, list[dict[str, Any]]] = {}
        self.capabilities: dict[str, Any] = {}
        self._ids = ids or count(1)
        self._incoming: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **process)
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if kind is not None or self.process.poll() is not None:
            self.process.kill()
        else:
            self.request("shutdown", None)
            self.notify("exit", None)
        self.process.wait(PATIENCE)
        self.process.stdin.close()
        self.process.stdout.close()

    def initialize(self, capabilities: Any = None, options: Any = None, **params: Any) -> Self:
        """Send initialize and initialized."""
        params = {"capabilities": capabilities or {}, "processId": None, "rootUri": None} | params
        if options is not None:
            params["initializationOptions"] = options
        self.capabilities = self.request("initialize", params)["capabilities"]
        self.notify("initialized", {})
        return self

    def write(self, data: bytes) -> None:
        """Send raw bytes."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        """Send a message with its header."""
        self.write(frame(message))

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: Any) -> Any:
        """Send a request; returns its id."""
        msg_id = next(self._ids)
        self.send({"jsonrpc": "2.0", "id": msg_id, "method": method, "params": params})
        return msg_id

    def reply(self, msg_id: Any) -> dict[str, Any]:
        """The whole response to a request."""
        self.until(lambda: self.replies.get(msg_id))
        return self.replies[msg_id].pop(0)

    def result(self, msg_id: Any) -> Any:
        """The result of a request. Raises Refused."""
        reply = self.reply(msg_id)
        if "error" in reply:
            raise Refused(reply["error"])
        return reply["result"]

    def request(self, method: str, params: Any) -> Any:
        """Send a request and wait for its result. Raises Refused."""
        return self.result(self.ask(method, params))

    def until(self, condition: Callable[[], Any]) -> None:
        """Receive messages until the condition holds."""
        while not condition():
            message = self._incoming.get(timeout=PATIENCE)
            assert message is not None, "the server has ended"
            self._take(message)

    def receive_all(self) -> None:
        """Receive everything that the server has sent so far."""
        self.request("test/text", {"uri": "nowhere"})

    def received(self, method: str) -> list[Any]:
        """Parameters of all messages of a method that the server has sent so far."""
        return [params for sent, params in self.notices if sent == method]

    def wait_for(self, method: str, count: int = 1) -> Any:
        """Parameters of the server's `count`-th message of a method."""
        self.until(lambda: len(self.received(method)) >= count)
        return self.received(method)[count - 1]

    def open(self, uri: str, text: str, language: str = "python", version: int = 1) -> None:
        """Open a document."""
        document = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def opened(self, text: str, language: str = "python") -> str:
        """Open a document that no other test uses; returns its uri."""
        uri = f"file:///{uuid4().hex}.py"
        self.open(uri, text, language)
        return uri

    def leave(self, *messages: dict[str, Any]) -> None:
        """Send the last messages without waiting, and check that the server ends normally."""
        for message in messages:
            self.send({"jsonrpc": "2.0"} | message)
        assert self.process.wait(PATIENCE) == 0

    def quiet(self) -> Self:
        """Forget the messages so far, for the next test that shares this server."""
        self.receive_all()
        self.notices.clear()
        self.replies.clear()
        return self

    def change(self, uri: str, version: int, *changes: dict[str, Any]) -> None:
        """Edit a document."""
        document = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": list(changes)})

    def text(self, uri: str) -> str | None:
        """The document as the server has it; None if it is not open."""
        return self.request("test/text", {"uri": uri})

    def inline(self, uri: str, line: int, column: int, kind: int = 2, **more: Any) -> int:
        """Request inline completion; returns the id."""
        return self.ask(INLINE, place(uri, line, column) | {"context": {"triggerKind": kind}} | more)

    def items(self, uri: str, line: int, column: int, kind: int = 2, **more: Any) -> list[dict[str, Any]]:
        """Inline completion items."""
        return self.result(self.inline(uri, line, column, kind, **more))["items"]

    def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self.replies.setdefault(message["id"], []).append(message)
            return
        self.notices.append((message["method"], message.get("params")))
        if "id" in message:
            self.questions.append((message["method"], message["id"]))
            answer = self.answers.get(message["method"], lambda _: None)(message["params"])
            if answer is not NotImplemented:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": answer})

    def _listen(self) -> None:
        stream = self.process.stdout
        while header := stream.readline():
            length = 0
            while header.strip():
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                header = stream.readline()
            self._incoming.put(json.loads(stream.read(length)))
        self._incoming.put(None)


def frame(message: Any) -> bytes:
    """A message with its header."""
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def place(uri: str, line: int, column: int) -> dict[str, Any]:
    """A document and a position in it."""
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}


def span(start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    """A range."""
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }


def script(**fill: Any) -> str:
    """A line of a document that makes the scripted engine answer like this."""
    return f"# [[{json.dumps(fill)}]]\n"
