"""The real server with an engine whose fills are written in the document, and requests for tests alone.

A document says `[[{"text": "...", "confidence": 0.9, "ms": 0, "error": null, "echo": false}]]`; the last script before
the gap counts. An echo is the first line of the engine's input. `steps` are canvases of [state, text] each, `step_ms`
apart and played `rounds` times; `unsure_from` is passed on in the fill. With `--parses-once` no document
is parsed after an edit. With `--rewrites` the engine rewrites regions too, also where a change is unlikely: `rewrites`
are pairs of an old line and new text. With `--place LINE` that line of the document at hand is the only likely place of
the next edit. With `--larger SCRIPT` that script offers a larger model, and adds it.

`test/text` returns a document, `test/given` the engine's last input, and `test/opened` the files that the process has
opened.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
from mercury_engine.api import (
    Answer,
    Control,
    Fill,
    FillRequest,
    RegionHunk,
    Request,
    Rewrite,
    RewriteRequest,
    SlotView,
)
from mercury_engine.errors import Cancelled, ModelNotFound
from tree_sitter import Parser, Tree

from mercury_lsp.commands.stdio import serve
from mercury_lsp.completion.next_edits import next_edits
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.places import Place
from mercury_lsp.documents import document
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.document import Snapshot, parse
from mercury_lsp.errors import UnknownDocument
from mercury_lsp.server import configuration
from mercury_lsp.server.routes import HANDLERS
from mercury_lsp.server.server import MercuryServer
from mercury_lsp.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.support.fake_engine import FakeEngine

_SCRIPT = re.compile(r"\[\[(\{.*?\})\]\]")


class ScriptedEngine(FakeEngine):
    """Fills as the document says, in small steps that can be cancelled."""

    given: ClassVar[dict[str, object]] = {}
    """The engine's last input."""

    async def answer(self, request: Request, control: Control | None = None) -> Answer:
        """What the document says."""
        control = control or Control()
        if isinstance(request, RewriteRequest):
            return self._rewritten(request)
        return await self._filled(request, control)

    async def _filled(self, request: FillRequest, control: Control) -> Fill:
        """The scripted fill, `suggested` by default."""
        self.given.update({"far": request.far, "near": request.near, "suffix": request.suffix})
        self.given["elsewhere"] = request.lookup_text
        given = "".join((*request.far, request.near, *request.suffix))
        script = _script(given)
        if script.get("echo"):
            script["text"] = given.partition("\n")[0]
        if script.get("error"):
            raise RuntimeError(script["error"])
        for slots in script.get("steps", []) * script.get("rounds", 1):
            if control.on_step is not None:
                control.on_step(tuple(SlotView(text, state, 0.5) for state, text in slots))
            await _wait(control, script.get("step_ms", 0))
        await _wait(control, script.get("ms", 0))
        text, confidence = script.get("text", "suggested"), script.get("confidence", 0.9)
        return Fill(text, confidence, 3, 0.001, is_finished=True, unsure_from=script.get("unsure_from"))

    def _rewritten(self, request: RewriteRequest) -> Rewrite:
        """The region with the scripted pairs replaced, except in the line of the script."""
        script = _script("".join((*request.far, request.near, request.text, *request.suffix)))
        lines, hunks = request.text.splitlines(keepends=True), list[RegionHunk]()
        for index, line in enumerate(lines):
            for old, new in script.get("rewrites", ()) if "[[" not in line else ():
                lines[index] = lines[index].replace(old, new)
            if lines[index] != line:
                hunks.append(RegionHunk(index, index + 1, lines[index], script.get("chance", 0.9)))
        return Rewrite("".join(lines), steps=1, elapsed=0.0, is_finished=True, hunks=tuple(hunks))


def _script(given: str) -> dict[str, Any]:
    found = _SCRIPT.findall(given)
    return json.loads(found[-1]) if found else {}


async def _wait(control: Control, milliseconds: int) -> None:
    """Raises Cancelled when the flag is set meanwhile."""
    end = time.monotonic() + milliseconds / 1000
    while True:
        if control.cancel.is_set():
            raise Cancelled("cancelled")
        if time.monotonic() >= end:
            return
        await asyncio.sleep(0.005)


def load(settings: Settings) -> ScriptedEngine:
    """Load the engine; models named `missing`, `broken`, `slow` and `stuck` do as they are called."""
    print("a library that prints while it is loaded")
    if settings.model == "missing":
        raise ModelNotFound("no model called missing; set mercury.model to a folder or a model name")
    if settings.model == "broken":
        raise ImportError("no torch")
    time.sleep({"slow": 0.3, "stuck": 3600}.get(settings.model or "", 0))
    return ScriptedEngine()


@attrs.define
class TextParams:
    """Parameters of `test/text`."""

    uri: str


def text(server: MercuryServer, params: TextParams) -> str | None:
    """The server's copy of a document; None if it is not open."""
    try:
        return server.session.documents.snapshot(params.uri).text
    except UnknownDocument:
        return None


@attrs.define
class NoParams:
    """For requests without parameters."""


def given(server: MercuryServer, params: NoParams) -> dict[str, object]:
    """The engine's last input."""
    return ScriptedEngine.given


opened: set[str] = set()


def note(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook: keep the names of files that are opened."""
    if event == "open" and isinstance(arguments[0], str):
        opened.add(arguments[0])


def names(server: MercuryServer, params: NoParams) -> list[str]:
    """The files opened so far."""
    return sorted(opened)


def parse_once(parser: Parser, source: ChunkedText, previous: Tree | None, seconds: float) -> Tree | None:
    """Parse as if the file were so large that no parse ends in time after an edit."""
    return parse(parser, source, previous, seconds) if previous is None else None


def always(place: str) -> Callable[..., Place]:
    """Finds this line of the document at hand, whatever was edited."""

    def find(documents: Sequence[tuple[Snapshot, str]], hunks: Sequence[Hunk]) -> Place:
        return Place.around(*documents[0], int(place))

    return find


if __name__ == "__main__":
    sys.addaudithook(note)
    if "--parses-once" in sys.argv:
        document.parse = parse_once
    if "--rewrites" in sys.argv:
        ScriptedEngine.edit_format = "scripted"
    if "--place" in sys.argv:
        next_edits.named_place = always(sys.argv[sys.argv.index("--place") + 1])
    if "--larger" in sys.argv:
        configuration.LARGER_MODEL_COMMAND = [sys.executable, sys.argv[sys.argv.index("--larger") + 1]]
    HANDLERS["test/text"] = text
    HANDLERS["test/given"] = given
    HANDLERS["test/opened"] = names
    sys.stdout.reconfigure(line_buffering=True)
    serve(load)
