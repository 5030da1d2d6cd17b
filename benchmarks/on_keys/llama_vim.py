"""llama.vim's side of a comparison: llama.cpp's server, asked for fills as that plugin asks it while the user types.

Each key sends 256 lines before the cursor's and 64 after it to `/infill`, with the plugin's samplers and limits. What
was returned before is typed through without a request. Left out, in its favour: the start of `curl`, requests for keys
whose answer nobody awaits, and the plugin's speculative requests. One open file gives it no extra chunks.
"""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from mercury_lsp.errors import UsageError
from on_keys.editor import KeyTimes, Typist
from on_keys.script import Key

LINES_BEFORE, LINES_AFTER = 256, 64

TYPED_THROUGH_CHARS = 128
"""Characters typed since an answer, up to which the plugin goes on with it."""

LOADING_SECONDS = 60

OPTIONS = {"ctx-size": 0, "batch-size": 1024, "ubatch-size": 1024, "cache-reuse": 256, "parallel": 1}
"""Those of `llama-server --fim-qwen-1.5b-default`, for one user."""

REQUEST: dict[str, Any] = {
    "id_slot": 0,
    "input_extra": [],
    "n_predict": 128,
    "stop": [],
    "top_k": 40,
    "top_p": 0.9,
    "samplers": ["top_k", "top_p", "infill"],
    "cache_prompt": True,
    "t_max_prompt_ms": 500,
    "t_max_predict_ms": 250,
    "response_fields": ["content", "timings/prompt_n"],
}
"""What every request says."""


class Plugin(Typist):
    """The plugin beside its server."""

    def __init__(self, client: httpx.Client, pid: int):
        self._http, self._server = client, pid
        self._requests: list[dict[str, Any]] = []
        self._answers: list[tuple[str, str, str]] = []
        """The text before the cursor and after it, and what was returned; the newest first."""

    @property
    def pid(self) -> int:
        return self._server

    def open(self, uri: str, language: str, text: str, cursor: int) -> None:
        """Have the server read the text around the cursor."""
        self._asked(text[:cursor], text[cursor:])

    def fills(self) -> list[dict[str, Any]]:
        return self._requests

    def _press(self, uri: str, key: Key, previous: str, text: str, due: float) -> KeyTimes | None:
        if key.hurried:
            return None
        time.sleep(max(0.0, due - time.monotonic()))
        sent, around = time.monotonic(), (text[: key.cursor], text[key.cursor :])
        found = self._typed_through(*around) or self._asked(*around)
        return KeyTimes(key.kind, sent, time.monotonic(), bool(found), found)

    def _typed_through(self, before: str, after: str) -> str:
        """What is left of an answer that the user has typed since; empty without one."""
        for earlier, rest, text in self._answers:
            typed = before[len(earlier) :] if rest == after and before.startswith(earlier) else None
            if typed is not None and len(typed) <= TYPED_THROUGH_CHARS and text.startswith(typed) and typed != text:
                return text[len(typed) :]
        return ""

    def _asked(self, before: str, after: str) -> str:
        *above, line = before.split("\n")
        rest, *below = after.removesuffix("\n").split("\n")
        line = line if (line + rest).strip() else ""
        body = {
            "input_prefix": "\n".join(above[-LINES_BEFORE:]) + "\n",
            "prompt": line,
            "input_suffix": "\n".join([rest, *below[:LINES_AFTER]]) + "\n",
            "n_indent": len(line) - len(line.lstrip()),
        }
        asked = time.monotonic()
        answer = self._http.post("/infill", json=REQUEST | body).raise_for_status().json()
        times = dict.fromkeys(("asked", "begun", "read"), asked) | {"ended": time.monotonic(), "steps": 0}
        self._requests.append(times | {"tokens_read": answer["timings/prompt_n"]})
        self._answers.insert(0, (before, after, answer["content"]))
        return str(answer["content"])


@contextmanager
def llama_vim(server: Path, gguf: Path, threads: int) -> Iterator[Plugin]:
    """The plugin beside a server that has loaded its model. Raises UsageError if that does not start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = OPTIONS | {"model": gguf, "threads": threads, "host": "127.0.0.1", "port": port}
    command = [str(server), *(str(each) for name, value in options.items() for each in (f"--{name}", value))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=None, trust_env=False) as client:
                _await(client, process)
                yield Plugin(client, process.pid)
        finally:
            process.terminate()


def _await(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    """Return when the server has loaded its model."""
    given_up = time.monotonic() + LOADING_SECONDS
    while process.poll() is None and time.monotonic() < given_up:
        with suppress(httpx.TransportError):
            if client.get("/health").is_success:
                return
        time.sleep(0.1)
    raise UsageError("llama-server does not start; run it by hand to see why")
