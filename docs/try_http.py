"""`make try-http`: starts the HTTP API with the bundled model and shows a request of each dialect with its reply.

At a terminal it then serves on until Ctrl-C, for clients to be tried.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

MAX_SHOWN_CHARS = 400

LINE = {"prompt": "def area(width, height):\n    return ", "suffix": "\n\n\nprint(area(2, 3))\n"}

QWEN = "<|fim_prefix|>{prompt}<|fim_suffix|>{suffix}<|fim_middle|>".format(**LINE)

EDIT = """<|current_file_content|>
current_file_path: shapes.py
def area(breadth, height):
<|code_to_edit|>
    return width * height<|cursor|>
<|/code_to_edit|>
<|/current_file_content|>
<|edit_diff_history|>
--- shapes.py
+++ shapes.py
@@ -1 +1 @@
-def area(width, height):
+def area(breadth, height):
<|/edit_diff_history|>"""

APPLY = """<|original_code|>
import math


def area(radius):
    return 3.14 * radius**2
<|/original_code|>
<|update_snippet|>
# ... existing code ...
def area(radius):
    return math.pi * radius**2
<|/update_snippet|>"""

REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("Mercury", "/v1/fim/completions", LINE),
    ("Mercury, streamed", "/v1/fim/completions", LINE | {"stream": True}),
    ("OpenAI, with a suffix", "/v1/completions", LINE | {"max_tokens": 32}),
    ("OpenAI, with Qwen's template", "/v1/completions", {"prompt": QWEN, "max_tokens": 32}),
    ("Tabby", "/v1/completions", {"segments": {"prefix": LINE["prompt"], "suffix": LINE["suffix"]}}),
    (
        "llama.cpp",
        "/infill",
        {"prompt": LINE["prompt"], "input_suffix": LINE["suffix"], "response_fields": ["content"]},
    ),
    ("llama.cpp, with a template", "/completion", {"prompt": QWEN, "n_predict": 32}),
    ("llama.cpp's tokens", "/tokenize", {"content": LINE["prompt"], "with_pieces": True}),
    ("Ollama", "/api/generate", LINE | {"stream": False}),
    ("Mercury's edits", "/v1/edit/completions", {"messages": [{"role": "user", "content": EDIT}]}),
    ("Mercury's apply", "/v1/apply/completions", {"messages": [{"role": "user", "content": APPLY}]}),
    (
        "Sweep",
        "/backend/next_edit_autocomplete",
        {"file_path": "a.py", "file_contents": "x = 1\n", "cursor_position": 3},
    ),
    ("models", "/v1/models", None),
    ("steps of a fill, for the playground", "/mercury/v1/steps", LINE),
    ("health", "/health", None),
    ("Prometheus", "/metrics", None),
)
"""Name, route and body; a route without a body is got."""


def main() -> int:
    with serving() as url:
        for name, path, body in REQUESTS:
            sent = json.dumps(body, ensure_ascii=False) if body is not None else ""
            method = "POST" if sent else "GET"
            show(f"\n{name}: {method} {url}{path}\n  {shortened(sent)}\n  -> {shortened(answer(url + path, sent))}")
        show(f"\nclients and their setup: docs/http.md; the playground, in a browser: {url}/")
        if sys.stdin.isatty():
            input("it serves on; Enter ends it ")
    return 0


def show(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server that runs meanwhile."""
    environment = {name: value for name, value in os.environ.items() if name != "MERCURY_TOKEN"}
    with tempfile.TemporaryDirectory(prefix="mercury-") as folder:
        address = ["--socket", str(Path(folder) / "socket")] if sys.platform != "win32" else []
        command = [
            sys.executable,
            "-m",
            "mercury_lsp",
            "serve",
            "--http",
            "127.0.0.1:0",
            "--model",
            "bundled",
            *address,
        ]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
            try:
                assert server.stderr is not None
                said = server.stderr.readline()
                if (found := re.search(r"serving (\S+) with ", said)) is None:
                    raise SystemExit(said)
                yield found[1]
            finally:
                server.terminate()


def answer(url: str, sent: str) -> str:
    """What the server replies."""
    request = Request(url, sent.encode() or None, {"Content-Type": "application/json"})
    try:
        with build_opener(ProxyHandler({})).open(request) as reply:
            return reply.read().decode()
    except HTTPError as error:
        return f"{error.code} {error.read().decode()}"


def shortened(text: str) -> str:
    """The beginning of a text, indented."""
    shown = text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]} ..."
    return shown.strip().replace("\n", "\n     ")


if __name__ == "__main__":
    raise SystemExit(main())
