"""A user of a server without a model, in this process: what rules alone show unasked, ten positions a second."""

import asyncio
from dataclasses import replace
from time import perf_counter
from typing import Any

from lsprotocol import types

from mercury_lab.editing.edit_desk import FOLDER, Answer, offset_of, position, uri
from mercury_lab.editing.line_edits import LineEdit, keystrokes, line_edit
from mercury_lab.editing.scenarios import Scenario
from mercury_lsp.documents.languages import language_of
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.engine_host.loading import load_engine
from mercury_lsp.server.requests.copilot.inline_edit import InlineEditParams, OwnParams, VersionedDocument, inline_edit
from mercury_lsp.server.server import MercuryServer


def ask_rules(scenario: Scenario) -> Answer:
    """The first edit that is shown after the scenario's edits."""
    return asyncio.run(_RuleDesk().answer(scenario))


class _RuleDesk:
    """The documents of one scenario; to be used in an event loop of its own."""

    def __init__(self) -> None:
        self._server = MercuryServer(Engines(load_engine))  # loads none, for the connection is never started
        own = self._server.editor.capabilities
        self._server.editor.capabilities = replace(own, takes_edits_elsewhere=True, takes_source=True)
        self._texts: dict[str, str] = {}
        self._versions: dict[str, int] = {}

    async def answer(self, scenario: Scenario) -> Answer:
        """Open the files, make the edits, and ask behind the last one."""
        try:
            self._work(scenario)
            return await self._ask(*scenario.cursor)
        finally:
            self._server.session.close()

    def _work(self, scenario: Scenario) -> None:
        session = self._server.session
        session.other_files.enable(True, client_watches=True)
        session.folders_changed([FOLDER.removesuffix("/")], ())
        for path, text in scenario.files.items():
            self._texts[path], self._versions[path] = text, 1
            session.document_opened(types.TextDocumentItem(uri(path), language_of(path), 1, text))
        for edit in scenario.edits:
            for start, end, text in keystrokes(self._texts[edit.path], edit):
                self._change(edit.path, start, end, text)

    def _change(self, path: str, start: int, end: int, text: str) -> None:
        old = self._texts[path]
        span = types.Range(*(types.Position(**position(old, at)) for at in (start, end)))
        self._texts[path], self._versions[path] = old[:start] + text + old[end:], self._versions[path] + 1
        change = types.TextDocumentContentChangePartial(span, text)
        self._server.session.document_changed(uri(path), self._versions[path], [change])

    async def _ask(self, path: str, offset: int) -> Answer:
        at = types.Position(**position(self._texts[path], offset))
        document = VersionedDocument(uri(path), self._versions[path])
        started = perf_counter()
        answer = await inline_edit(self._server, InlineEditParams(document, at, OwnParams(fills=False)))
        milliseconds = 1000 * (perf_counter() - started)
        found = self._edit(answer["edits"][0]) if answer["edits"] else None
        return Answer(found, milliseconds, source="rule" if found else "")

    def _edit(self, shown: dict[str, Any]) -> LineEdit:
        path = next(each for each in self._texts if uri(each) == shown["textDocument"]["uri"])
        old = self._texts[path]
        start, end = (offset_of(old, shown["range"][side]) for side in ("start", "end"))
        return line_edit(path, old, start, end, shown["text"])
