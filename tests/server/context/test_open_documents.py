"""Which parses a key in an open document triggers, and which it leaves for later."""

import pytest
from lsprotocol import types

from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.documents import document as module

URI = "file:///src/a.py"
TEXT = 'import os\n\n\ndef f(a, b):\n    return a + b\n\n\ndef g():\n    """It does.\n\n    So."""\n    x = 1\n    \n'


class Typist:
    """Types into one document and records the parsed versions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.open = OpenDocuments()
        self.version, self.parsed = 0, []
        parse = module.parse
        monkeypatch.setattr(module, "parse", lambda *given: self.parsed.append(self.version) or parse(*given))
        self.open.open(types.TextDocumentItem(URI, "python", 0, TEXT))
        self.open.snapshot(URI)
        assert self.parsed == [0]

    def type(self, line: int, column: int, text: str) -> bool:
        """Type key by key, with a context for each; returns whether a suggestion after it may have several lines."""
        for key in text:
            self.version += 1
            at = types.Position(line, column)
            change = types.TextDocumentContentChangePartial(types.Range(at, at), key)
            self.open.change(URI, self.version, [change])
            line, column = (line + 1, 0) if key == "\n" else (line, column + 1)
            context, _ = self.open.context_at(URI, types.Position(line, column))
        return context.multiline


@pytest.fixture
def typist(monkeypatch):
    return Typist(monkeypatch)


def test_keys_within_a_line_trigger_no_parse(typist):
    assert not typist.type(4, 16, " * (len(os.path) - 3")
    assert typist.parsed == [0]


def test_on_a_blank_line_the_syntax_decides_whether_several_lines_may_follow(typist):
    assert typist.type(12, 4, "\n    ")
    assert typist.parsed == [0, 1, 2, 3, 4, 5]
    assert not typist.type(9, 0, " ")
    assert typist.parsed[-1] == typist.version == 6
