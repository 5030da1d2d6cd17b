"""A local server that answers as the Hugging Face Hub does, as far as downloads go."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeHub:
    """Holds one repository; set `url` as HF_ENDPOINT."""

    def __init__(self, name: str, files: dict[str, bytes], licence: str | None = "mit"):
        self.name, self.files, self.licence = name, files, licence
        self.altered: dict[str, bytes] = {}
        """Sent in place of what is listed."""
        self.cut_at: int | None = None
        """Bytes after which the next transfer of a file breaks off, once."""
        self.refusal: str | None = None
        """The error code with which everything is refused, such as GatedRepo."""
        self.sent: list[tuple[str, int]] = []
        """Every transfer: the file's path and the byte it began with."""
        self.tokens: set[str | None] = set()
        self.url = ""

    def listing(self) -> dict[str, object]:
        """The answer about the repository; weights are large files, which have a hash."""
        siblings: list[dict[str, object]] = []
        for path, content in self.files.items():
            large = PurePosixPath(path).suffix in (".safetensors", ".gguf")
            sha256 = hashlib.sha256(content).hexdigest()
            lfs = {"lfs": {"sha256": sha256, "size": len(content), "pointerSize": 130}} if large else {}
            siblings.append({"rfilename": path, "size": len(content), "blobId": "0", **lfs})
        card = {"cardData": {"license": self.licence}} if self.licence else {}
        return {"_id": "0", "id": self.name, "sha": COMMIT, "siblings": siblings, "tags": [], "private": False, **card}


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """Serve the repository meanwhile."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.tokens.add(self.headers["authorization"])
            path = self.path.partition("?")[0]
            stem = f"/{hub.name}/resolve/{COMMIT}/"
            if hub.refusal:
                self._answer(403, b"", {"X-Error-Code": hub.refusal})
            elif path.startswith(f"/api/models/{hub.name}"):
                self._answer(200, json.dumps(hub.listing()).encode(), {"Content-Type": "application/json"})
            elif path.startswith(stem) and path.removeprefix(stem) in hub.files:
                self._send_file(path.removeprefix(stem))
            else:
                self._answer(404, b"", {"X-Error-Code": "RepoNotFound"})

        def _send_file(self, path: str) -> None:
            content = hub.altered.get(path, hub.files[path])
            asked = self.headers["range"]
            start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
            hub.sent.append((path, start))
            where = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if asked else {}
            self._answer(206 if asked else 200, content[start:], where)

        def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            end, hub.cut_at = (hub.cut_at, None) if b"{" not in body[:1] else (None, hub.cut_at)
            self.wfile.write(body[:end])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
