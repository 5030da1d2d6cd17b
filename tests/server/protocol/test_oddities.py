"""Documents beyond a limit are left alone and their users told; none holds up another connection."""

import asyncio

import pytest
from lsprotocol import types

from mercury_lsp.documents.chunked_text import MAX_DOCUMENT_CHARS, SLICE_CHARS, SLICE_CHUNKS, ChunkedText
from mercury_lsp.engine_host.engines import Engines
from mercury_lsp.relay.mirror import Mirror
from mercury_lsp.server.routes import create_server
from tests.support.editor import Editor, script, span
from tests.support.fake_engine import FakeEngine
from tests.support.sharing import Place

URI = "file:///large%20one.json"

LINES = "x = 1\n" * (MAX_DOCUMENT_CHARS // 6 + 1)
"""A document beyond the limit."""

LONG = "x" * 129_000
"""A line beyond the limit."""


def told(editor: Editor) -> list[str]:
    return [each["message"] for each in editor.received("window/showMessage")]


@pytest.mark.parametrize(("text", "why"), [(LINES, "more than 12,000,000 characters"), (LONG, "a line of more than")])
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


def test_a_document_that_grows_beyond_the_limit_is_left_alone():
    with Editor() as editor:
        editor.initialize()
        editor.open(URI, script() + "x = ")
        assert len(editor.items(URI, 1, 4)) == 1
        editor.change(URI, 2, {"text": LINES})
        assert editor.items(URI, 1, 4) == [] and editor.text(URI) == ""
        editor.change(URI, 3, {"text": script() + "x = "})
        assert len(editor.items(URI, 1, 4)) == 1


def test_another_daemon_leaves_it_alone_as_the_first_did():
    copy = Mirror({"uri": URI, "languageId": "json", "version": 1, "text": LINES})
    copy.change(2, [{"range": span((0, 0), (0, 0)), "text": "typed"}])
    assert copy.item()["text"] == LINES
    copy.change(3, [{"range": span((0, 0), (0, 0)), "text": "lost"}, {"text": "whole"}])
    copy.change(4, [{"range": span((0, 0), (0, 0)), "text": "a "}])
    assert copy.item() == {"uri": URI, "languageId": "json", "version": 4, "text": "a whole"}


# Slices


@pytest.mark.parametrize(
    "text", ["", "x", "a\r\n" * 9000, "é😀\r" * 9000, "x" * 70_000, "x = 1\n\n" * 9000, "\n" * 50_000]
)
def test_a_text_cut_in_slices_is_the_text(text: str):
    cutting = ChunkedText.in_slices(text)
    slices = 0
    while True:
        try:
            next(cutting)
        except StopIteration as done:
            found = done.value
            break
        slices += 1
    assert "".join(found.chunks) == text
    assert found._measures == ChunkedText(found.chunks)._measures
    assert not any(
        a.endswith("\r") and b.startswith("\n") for a, b in zip(found.chunks, found.chunks[1:], strict=False)
    )
    assert slices >= len(text) / (SLICE_CHARS + 1) and len(found.chunks) <= slices * SLICE_CHUNKS


def _served_meanwhile(one: Editor, other: Editor, asked: int) -> int:
    """How often another editor is answered, up to twenty times, before the one is."""
    served = 0
    while asked not in one.replies and served < 20:
        assert len(other.items("file:///small.py", 1, 4)) == 1
        one.until(lambda: True)
        served += 1
        _drain(one)
    return served


@pytest.mark.parametrize(
    ("text", "is_kept", "least"),
    [(LINES[:2_000_000], True, 5), ("x" * 9 + "\n" * 1_900_000, True, 5), ("é = '😀'\n" * 6_000_000, False, 10)],
    ids=["2 MB", "short lines", "100 MB"],
)
def test_others_are_served_while_a_large_document_is_opened(unix: Place, text: str, is_kept: bool, least: int):
    with unix.editor() as one, unix.editor() as other:
        one.initialize()
        other.initialize()
        other.open("file:///small.py", script() + "x = ")
        one.open(URI, text)
        asked = one.ask("test/text", {"uri": URI})
        served = _served_meanwhile(one, other, asked)
        assert one.result(asked) == (text if is_kept else "")
        assert served >= least


@pytest.mark.parametrize("place", [{"range": span((5, 0), (7, 1))}, {}], ids=["a part", "the whole text"])
def test_others_are_served_while_a_large_text_is_pasted(unix: Place, place: dict):
    with unix.editor() as one, unix.editor() as other:
        one.initialize()
        other.initialize()
        other.open("file:///small.py", script() + "x = ")
        one.open(URI, "a = 1\n" * 9)
        assert one.text(URI) is not None
        text = LINES[:2_000_000]
        one.change(URI, 2, {"text": text} | place)
        asked = one.ask("test/text", {"uri": URI})
        served = _served_meanwhile(one, other, asked)
        assert one.result(asked) == ("a = 1\n" * 5 + text + " = 1\na = 1\n" if place else text)
        assert served >= 5


@pytest.mark.parametrize("new", ["x = 1\r\n" * 3000, "\n" * 20_000, "é" * 17_000 + "\r", "\nline\r" * 4000])
@pytest.mark.parametrize("old", ["", "a\r\nb\rc\nd\r", "a = 1\r\n" * 3000])
def test_a_text_that_was_cut_before_it_is_inserted_is_the_text_that_was_not(old: str, new: str):
    source, cutting = ChunkedText.of(old), ChunkedText.in_slices(new)
    try:
        while True:
            next(cutting)
    except StopIteration as done:
        cut = done.value
    for start in {0, 1, 2, 3, len(old) // 2, len(old)} & set(range(len(old) + 1)):
        for end in {start, min(start + 3, len(old)), len(old)}:
            found = source.replace(start, end, new, cut)
            assert "".join(found.chunks) == old[:start] + new + old[end:]
            assert all(found.chunks) and found._measures == ChunkedText(found.chunks)._measures
            pairs = zip(found.chunks, found.chunks[1:], strict=False)
            assert not any(a.endswith("\r") and b.startswith("\n") for a, b in pairs)


def _drain(editor: Editor) -> None:
    """Take what has arrived."""
    while not editor._incoming.empty():
        editor._take(editor._incoming.get())


@pytest.mark.parametrize("method", ["textDocument/didOpen", "textDocument/didChange"])
async def test_while_a_long_text_is_cut_the_loop_turns_after_every_slice(method: str):
    server = create_server(Engines(lambda _: FakeEngine()))
    server.session.document_opened(types.TextDocumentItem(URI, "json", 1, ""))
    text, turns = LINES[:1_000_000], 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    serving = asyncio.create_task(others())
    changes = {"textDocument": {"uri": URI, "text": text}, "contentChanges": [{"text": text}]}
    await server._prepare({"method": method, "params": changes})
    serving.cancel()
    assert turns >= len(text) // SLICE_CHARS
    server.shutdown()


async def test_a_long_document_is_parsed_in_slices_when_it_is_opened_and_after_a_paste(monkeypatch):
    """No slice begins before other work had its turn, and the user's pause is only over once the tree is there."""
    monkeypatch.setattr("mercury_lsp.documents.parsing.PARSE_SLICE_SECONDS", 0.0)
    monkeypatch.setattr("mercury_lsp.server.typing_pauses.TYPING_PAUSE_SECONDS", 0.01)
    server = create_server(Engines(lambda _: FakeEngine()))
    session, text = server.session, "".join(f"def f{n}(a):\n    return a[{n}]\n" for n in range(6_000))
    slices, prepared = [], []
    parse_a_little, prepare = session.documents.parse_a_little, session.other_files.prepare
    session.documents.parse_a_little = lambda: slices.append(turns) or parse_a_little()
    session.other_files.prepare = lambda uri: prepared.append(session.documents.snapshot(uri).is_parsed) or prepare(uri)
    turns = 0

    async def parsed() -> None:
        nonlocal turns
        while not session.documents.snapshot(URI).is_parsed:
            await asyncio.sleep(0)
            turns += 1

    session.document_opened(types.TextDocumentItem(URI, "python", 1, text))
    assert session.documents.snapshot(URI).tree is None
    await parsed()
    start = types.Position(0, 0)
    change = types.TextDocumentContentChangePartial(types.Range(start, start), text)
    session.document_changed(URI, 2, [change])
    await parsed()
    assert len(slices) > 40 and len(set(slices)) == len(slices) and prepared and all(prepared)
    assert session.documents.snapshot(URI).tree.root_node.end_byte == 2 * len(text)
    server.shutdown()
