"""Documents beyond a limit are left alone and their users told; long ones are parsed in slices."""

import asyncio

import pytest
from lsprotocol import types

from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.documents.chunked_text import MAX_DOCUMENT_CHARS
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.server.routes import create_server
from tests.support.editor import Editor, script, span
from tests.support.fake_engine import FakeEngine

URI = "file:///large%20one.json"

LINES = "x = 1\n" * (MAX_DOCUMENT_CHARS // 6 + 1)
"""A document beyond the limit."""

LONG = "x" * 129_000
"""A line beyond the limit."""


def told(editor: Editor) -> list[str]:
    return [each["message"] for each in editor.received("window/showMessage")]


@pytest.mark.parametrize(("text", "why"), [(LINES, "more than 2,000,000 characters"), (LONG, "a line of more than")])
def test_a_document_beyond_a_limit_is_left_alone_and_its_user_told_once(text: str, why: str):
    with Editor() as editor:
        editor.initialize()
        editor.open(URI, text)
        for _ in range(2):
            assert editor.items(URI, 0, 3) == []
        [message] = told(editor)
        assert why in message and "large one.json" in message
        other = editor.opened(script() + "x = ")
        assert len(editor.items(other, 1, 4)) == 1
        assert editor.request("test/given", {})["elsewhere"] == []


@pytest.mark.parametrize("text", [LINES, LONG])
def test_a_document_that_is_usual_again_is_served_again(text: str):
    with Editor() as editor:
        editor.initialize()
        editor.open(URI, text)
        editor.change(URI, 2, {"range": span((0, 0), (0, 0)), "text": "typed"})
        assert editor.items(URI, 0, 3) == []
        editor.change(URI, 3, {"text": script() + "x = "}, {"range": span((1, 4), (1, 4)), "text": "y"})
        assert editor.text(URI) == script() + "x = y"
        assert len(editor.items(URI, 1, 5)) == 1


# Slices


async def test_a_long_document_is_parsed_in_slices_when_it_is_opened_and_after_a_paste(monkeypatch):
    """No slice begins before other work had its turn, and the user's pause is only over once the tree is there."""
    monkeypatch.setattr("mercury_lsp.documents.parsing.PARSE_SLICE_SECONDS", 0.0)
    monkeypatch.setattr("mercury_lsp.debounce.TYPING_PAUSE_SECONDS", 0.01)
    slices, prepared, turns, parse_a_little = [], [], 0, OpenDocuments.parse_a_little
    monkeypatch.setattr(OpenDocuments, "parse_a_little", lambda it: slices.append(turns) or parse_a_little(it))
    server = create_server(Engines(lambda _: FakeEngine()), lambda _: None)
    session, text = server.session, "".join(f"def f{n}(a):\n    return a[{n}]\n" for n in range(6_000))
    session.other_files.prepare = lambda uri: prepared.append(session.documents.snapshot(uri).is_parsed)

    async def parsed() -> None:
        nonlocal turns
        prepared.clear()
        while not prepared:
            await asyncio.sleep(0)
            turns += 1

    session.document_opened(types.TextDocumentItem(URI, "python", 1, text))
    assert session.documents.snapshot(URI).tree is None
    await parsed()
    start = types.Position(0, 0)
    change = types.TextDocumentContentChangePartial(types.Range(start, start), text)
    session.document_changed(URI, 2, [change])
    await parsed()
    assert len(slices) > 40 and len(set(slices)) == len(slices) and all(prepared)
    assert session.documents.snapshot(URI).tree.root_node.end_byte == 2 * len(text)
    server.close()
