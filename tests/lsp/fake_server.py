"""The real server with an engine whose fills are written in the document.

A document says `[[{"text": "...", "confidence": 0.9, "ms": 0, "error": null}]]`; the last one counts.
"""

import json
import re
import sys
import time

from mercury_engine.errors import Cancelled, ModelNotFound
from mercury_engine.requests import Fill, FillRequest

from mercury_lsp.commands.serve import serve
from mercury_lsp.settings import Settings

_SCRIPT = re.compile(r"\[\[(\{.*?\})\]\]")


class FakeEngine:
    """Fills as the document says, in small steps that can be cancelled."""

    name = "fake"
    device = "cpu"
    gate = 0.5

    def fill(self, request: FillRequest) -> Fill:
        """The scripted fill, `suggested` by default."""
        found = _SCRIPT.findall("".join((*request.far, request.near, *request.suffix)))
        script = json.loads(found[-1]) if found else {}
        if script.get("error"):
            raise RuntimeError(script["error"])
        end = time.monotonic() + script.get("ms", 0) / 1000
        while True:
            if request.cancel.is_set():
                raise Cancelled("cancelled")
            if time.monotonic() >= end:
                break
            time.sleep(0.005)
        return Fill(script.get("text", "suggested"), script.get("confidence", 0.9), steps=3, elapsed=0.001)


def load(settings: Settings) -> FakeEngine:
    """Fails, dawdles or hangs for models named so."""
    print("a library that prints while it is loaded")
    if settings.model == "missing":
        raise ModelNotFound("no model called missing; set mercury.model to a folder or a model name")
    if settings.model == "broken":
        raise ImportError("no torch")
    time.sleep({"slow": 0.3, "stuck": 3600}.get(settings.model or "", 0))
    return FakeEngine()


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    serve(load)
