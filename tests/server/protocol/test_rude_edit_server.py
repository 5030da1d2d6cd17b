"""Servers for edits that misbehave: rules and fills are answered, few requests are sent, and users are told.

One editor meets them all; a change of its configuration makes it ask again at once.
"""

import gzip
import json
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Event, Thread
from typing import Any

import pytest

from tests.support import tiny
from tests.support.edit_server import Desk, opened, said
from tests.support.editor import Editor

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="other systems keep user data elsewhere"),
    tiny.needs_kernels,
]

TYPED = "def area(width, height):\n    return side * side\n\n\nprint(area(1, 2))\n"
FIRST = TYPED.replace("side * side", "width * height")
OTHER = "def volume(side):\n    return side\n\n\nprint(volume(2))\n"

MAX_REQUESTS = 3
"""For two questions: a busy server is asked three times for the first one, and then left alone."""

Talk = Callable[[socket.socket], None]


def http(body: bytes, status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    """A reply; `length` is what it says of its body."""
    size = len(body) if length is None else length
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {size}", *headers, "", ""]).encode() + body


def choice(**fields: Any) -> bytes:
    return http(json.dumps({"choices": [{"index": 0, "finish_reason": "stop"} | fields]}).encode())


def says(content: bytes) -> Talk:
    return lambda connection: connection.sendall(content)


def forever(begin: bytes, drop: bytes, seconds: float = 0.01) -> Talk:
    """Sends the beginning, and then drop by drop until the client hangs up."""

    def talk(connection: socket.socket) -> None:
        connection.sendall(begin)
        connection.settimeout(seconds)
        while True:
            with suppress(TimeoutError):
                if connection.recv(1) == b"":
                    return
            connection.sendall(drop)

    return talk


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"

WAITS = {
    "silent": forever(b"", b""),
    "a head and no more": forever(HEAD, b""),
    "drips blanks": forever(HEAD, b" "),
    "drips a text": forever(HEAD + b'{"choices": [{"text": "', b"x"),
    "drips head lines": forever(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n"),
    "drips information": forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}
"""They keep their connection open; the question is withdrawn."""

OF_NO_USE = {
    "hangs up": says(b""),
    "resets": reset,
    "half a head": says(b"HTTP/1.1 200 OK\r\nConte"),
    "no HTTP": says(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "endless": forever(HEAD, b"x" * 65_536, 0.0001),
    "an endless head": forever(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65_536, 0.0001),
    "less than it says": says(http(b'{"choices": ', length=500)),
    "two lengths": says(http(b"{}", "200 OK", "Content-Length: 7")),
    "broken chunks": says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"),
    "no gzip": says(http(b"{}", "200 OK", "Content-Encoding: gzip")),
    "a bomb of gzip": says(http(gzip.compress(b" " * 2**25), "200 OK", "Content-Encoding: gzip")),
    "500": says(http(b"out of memory", "500 Internal Server Error")),
    "502": says(http(b"<html>Bad Gateway</html>", "502 Bad Gateway", "Content-Type: text/html")),
    "503": says(http(b'{"error": {"message": "Loading model"}}', "503 Service Unavailable")),
    "429": says(http(b"", "429 Too Many Requests", "Retry-After: 100000")),
    "401": says(http(b'{"error": {"message": "no key"}}', "401 Unauthorized")),
    "403": says(http(b"", "403 Forbidden")),
    "404": says(http(b"{}", "404 Not Found")),
    "418": says(http(b"teapot", "418 I'm a teapot")),
    "400": says(http(b'{"error": {"message": "bad request"}}', "400 Bad Request")),
    "413": says(http(b"", "413 Payload Too Large")),
    "redirects": says(http(b"", "302 Found", "Location: http://127.0.0.1:9/")),
    "redirects to itself": says(http(b"", "308 Permanent Redirect", "Location: /v1/completions")),
    "no content": says(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "a page": says(http(b"<html>welcome</html>", "200 OK", "Content-Type: text/html")),
    "nothing": says(http(b"")),
    "null": says(http(b"null")),
    "a list": says(http(b"[]")),
    "an error": says(http(b'{"error": {"message": "no slot"}}')),
    "no choice": says(http(b'{"choices": []}')),
    "a number": says(choice(text=3)),
    "no text": says(choice(text=None)),
    "deep": says(http(b"[" * 100_000)),
    "huge": says(http(b'{"choices": [{"text": "' + b"x" * 2**22 + b'"}]}')),
    "events": says(http(b'data: {"choices": [{"text": "x"}]}\n\ndata: [DONE]\n\n')),
    "bytes": says(http(bytes(range(256)))),
}
"""Users are told, and they are left alone for a while."""

SILENT = {
    "cut off": says(choice(text=FIRST, finish_reason="length")),
    "a sentinel": says(choice(text="<[fim-middle]>" * 9)),
    "blanks": says(choice(text=" \n\n\t")),
    "a long line": says(choice(text="x" * 100_000)),
    "half characters": says(http(choice(text=FIRST).partition(b"\r\n\r\n")[2].replace(b"width *", b"width * \xff"))),
    "zeros": says(choice(text="\0" * 1000)),
}
"""What they write is of no use."""


class RudeServer(ThreadingTCPServer):
    """Reads a request, and then talks as it is told."""

    daemon_threads = allow_reuse_address = True

    def __init__(self) -> None:
        self.talk: Talk = says(b"")
        self.asked = 0
        self.ended = Event()
        """Whether the last connection has ended."""
        super().__init__(("127.0.0.1", 0), Conversation)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def begin(self, talk: Talk) -> None:
        self.talk, self.asked = talk, 0
        self.ended.clear()

    def handle_error(self, request: Any, client_address: Any) -> None: ...  # the client has hung up


class Conversation(BaseRequestHandler):
    def handle(self) -> None:
        server, connection = self.server, self.request
        assert isinstance(server, RudeServer)
        head = b""
        while b"\r\n\r\n" not in head:
            if not (part := connection.recv(65_536)):
                return
            head += part
        begun, _, rest = head.partition(b"\r\n\r\n")
        left = int(begun.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]) - len(rest)
        while left > 0:
            left -= len(connection.recv(65_536))
        server.asked += 1
        try:
            server.talk(connection)
        finally:
            server.ended.set()


@dataclass
class User:
    """An editor whose next edits the rude server makes."""

    editor: Editor
    server: RudeServer
    model: Path

    def meets(self, talk: Talk) -> Desk:
        """The server talks so from now on, and is asked again."""
        self.server.begin(talk)
        settings = {"mercury": {"model": str(self.model)}}
        self.editor.notify("workspace/didChangeConfiguration", {"settings": settings})
        return Desk(self.editor, TYPED)

    def asks(self, desk: Desk) -> Any:
        """Ask for an edit until the server is asked, for the new configuration may not be in use yet."""
        where = {"textDocument": {"uri": desk.uri, "version": 1}, "position": {"line": 0, "character": 10}}
        while True:
            asked = self.editor.ask("textDocument/copilotInlineEdit", where)
            while not self.server.asked and asked not in self.editor.replies:
                self.editor.request("mercury/status", {})
            if self.server.asked:
                return asked

    def works_elsewhere(self) -> None:
        """Fills and edits by rules are answered in another document."""
        other = Desk(self.editor, OTHER)
        assert isinstance(self.editor.items(other.uri, 1, 4, kind=1), list)
        other.replace("def volume", "def content")
        assert other.take(0, 11) and "print(content(2))" in other.text

    def told(self) -> list[str]:
        return [line for line in said(self.editor) if line.startswith("Mercury: mercury.editModel")]


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    model = tiny.folder(tmp_path_factory.mktemp("models") / "here", rank=0, **tiny.WIDE)
    with RudeServer() as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with opened(model, f"{server.url}#zeta-2") as editor:
            yield User(editor, server, model)
        server.shutdown()


@pytest.mark.parametrize("talk", WAITS.values(), ids=WAITS)
def test_nobody_waits_for_a_server_that_keeps_its_connection_open(user: User, talk: Talk):
    asked = user.asks(user.meets(talk))
    user.works_elsewhere()
    user.editor.notify("$/cancelRequest", {"id": asked})
    user.editor.reply(asked)
    user.server.ended.wait()  # the server was hung up on
    assert user.server.asked == 1


@pytest.mark.parametrize("talk", OF_NO_USE.values(), ids=OF_NO_USE)
def test_a_server_of_no_use_is_told_once_and_left_alone(user: User, talk: Talk):
    told = len(user.told())
    desk = user.meets(talk)
    assert user.editor.result(user.asks(desk)) == {"edits": []}
    user.works_elsewhere()
    assert desk.asked(0, 11) == []
    assert 1 <= user.server.asked <= MAX_REQUESTS
    assert 0 <= len(user.told()) - told <= 1  # the same words are not shown again
    assert "no model makes next edits" in user.told()[-1]


@pytest.mark.parametrize("talk", SILENT.values(), ids=SILENT)
def test_an_answer_of_no_use_shows_nothing_and_says_why(user: User, talk: Talk):
    told = len(user.told())
    desk = user.meets(talk)
    assert user.editor.result(user.asks(desk)) == {"edits": []}
    assert "the model changes nothing" in desk.explained() or "is not shown" in desk.explained()
    user.works_elsewhere()
    assert user.server.asked == 1 and len(user.told()) == told
