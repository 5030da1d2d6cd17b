"""A small HTTP server on a thread of its own that keeps what it is sent and replies as a script has it."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

from mercury_engine.api import Answer, Control, Fill, FillRequest

from mercury_lsp.engine_host.remote import wire
from mercury_lsp.engine_host.remote.engine import RemoteEngine
from mercury_lsp.plain_data import plain
from tests.support.fake_engine import FakeEngine


@dataclass(frozen=True)
class Sent:
    """A request."""

    method: str
    path: str
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.content)


Reply = tuple[int, bytes]

Route = Callable[[Sent], Reply | None]
"""Gives status and content, of a redirection its target; None hangs up without a reply."""


class FakeRemote:
    """`routes` by method and path, as in "POST /infill"; anything else is not found."""

    def __init__(self, routes: dict[str, Route]):
        self.sent: list[Sent] = []
        remote = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                sent = Sent(self.command, self.path, dict(self.headers), self.rfile.read(length))
                remote.sent.append(sent)
                route = routes.get(f"{sent.method} {sent.path}", lambda _: (404, b"{}"))
                reply = route(sent)
                self.close_connection = True
                if reply is not None:
                    self.send_response(reply[0])
                    if 300 <= reply[0] < 400:
                        self.send_header("Location", reply[1].decode())
                    self.send_header("Content-Length", str(len(reply[1])))
                    self.end_headers()
                    self.wfile.write(reply[1])

            do_GET = do_POST = handle_any

            def log_message(self, format: str, *arguments: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def posted(self, path: str) -> list[Any]:
        """The bodies sent to a route."""
        return [sent.body for sent in self.sent if (sent.method, sent.path) == ("POST", path)]


def elsewhere(remote: FakeRemote) -> str:
    """The server's URL by an address that is not known to be this machine's; on Linux it is."""
    return remote.url.replace("127.0.0.1", "0.0.0.0")


def says(*lines: Any, status: int = 200) -> Route:
    """A reply of lines of JSON."""
    return lambda _: (status, b"".join(json.dumps(line).encode() + b"\n" for line in lines))


ABOUT = plain(wire.About("elsewhere", "cuda", "torch", "sweep"))


def mercury(answer: Answer | Route) -> FakeRemote:
    """A Mercury server that describes itself and gives every request this answer."""
    route = answer if callable(answer) else says({"answer": plain(answer)})
    return FakeRemote({f"GET {wire.PATH}": says(ABOUT), f"POST {wire.PATH}": route})


async def remote(url: str, *arguments: Any) -> RemoteEngine:
    """The engine at a URL; unless the arguments name another local one, that fills `local`."""
    return await asyncio.to_thread(RemoteEngine, url, *(arguments or (lambda: FakeEngine("local"),)))


async def filled(engine: RemoteEngine, request: FillRequest, control: Control | None = None) -> Fill:
    found = await engine.answer(request, control)
    assert isinstance(found, Fill)
    return found
