"""A user at the completer: one open document, edited from its first line on."""

from lsprotocol import types

from mercury_lsp.completion.coalescing import Feature, SuggestionRequest
from mercury_lsp.completion.completer import Completer
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.engine_host.engines import Engines
from tests.support.fake_engine import FakeEngine

URI = "file:///sample.py"


class CompleterDesk:
    """One open document and the completer, in this process."""

    def __init__(self, engine: FakeEngine, text: str):
        self.engine = engine
        self.completer = Completer(Engines(lambda settings: engine))
        self.documents = OpenDocuments()
        self.documents.open(types.TextDocumentItem(URI, "python", 1, text))

    def replace(self, start: int, end: int, text: str, line: int = 0) -> None:
        """Edit from the first line to another one."""
        span = types.Range(types.Position(0, start), types.Position(line, end))
        change = types.TextDocumentContentChangePartial(span, text)
        version = self.documents.snapshot(URI).version + 1
        self.completer.edited(URI, self.documents.change(URI, version, [change]))

    async def ask(self, column: int, automatic: bool = True, feature: Feature = "inline", line: int = 0) -> list[str]:
        """Texts suggested on a line."""
        context, snapshot = self.documents.context_at(URI, types.Position(line, column))
        request = SuggestionRequest(feature, snapshot, context.offset, invoked=not automatic)
        self.completer.supersede(request)
        found = await self.completer.complete(context, request)
        return [each.text for each in found]
