"""Clients that declare it get the denoising of an invoked completion streamed, and the model's confidence."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.editor import INLINE, Editor, Refused, place, script, span

OURS = {"experimental": {"mercury": {"confidence": True, "denoising": True}}}
URI = "file:///work/space/sample.py"
FIRST = [["committed", "a"], ["draft", " = "], ["draft", "2"], ["mask", ""], ["mask", ""]]
SECOND = [["committed", "a"], ["committed", " = "], ["committed", "1"], ["end", ""], ["mask", ""]]


@pytest.fixture
def editor() -> Iterator[Editor]:
    with Editor() as made:
        made.initialize(OURS)
        yield made


def ask(editor: Editor, kind: int = 1, **fill: Any) -> int:
    """Request a completion behind a script, with the token `part`; returns the id."""
    editor.open(URI, script(**fill))
    context = {"context": {"triggerKind": kind}, "partialResultToken": "part"}
    return editor.ask(INLINE, place(URI, 1, 0) | context)


def parts(editor: Editor) -> list[dict[str, Any]]:
    """The one item of every partial result."""
    values = [progress["value"] for progress in editor.received("$/progress") if progress["token"] == "part"]
    assert all(len(items) == 1 for items in values)
    return [items[0] for items in values]


def test_an_invoked_completion_streams_its_canvas_step_by_step(editor: Editor):
    items = editor.result(ask(editor, text="a = 1", steps=[FIRST, SECOND], step_ms=60))["items"]
    first, second = parts(editor)
    assert first == {
        "insertText": "a",
        "range": span((1, 0), (1, 0)),
        "mercury": {
            "slots": [
                {"state": "committed", "text": "a", "count": 1},
                {"state": "draft", "text": " = 2", "count": 2},
                {"state": "mask", "text": "", "count": 2},
            ]
        },
    }
    assert second["mercury"]["slots"] == [{"state": "committed", "text": "a = 1", "count": 3}]
    assert [item["insertText"] for item in items] == ["a = 1"]


def test_a_cancelled_request_streams_nothing_further(editor: Editor):
    msg_id = ask(editor, steps=[FIRST], rounds=200, step_ms=5)
    editor.wait_for("$/progress")
    editor.notify("$/cancelRequest", {"id": msg_id})
    with pytest.raises(Refused):
        editor.result(msg_id)
    before = len(parts(editor))
    editor.receive_all()
    editor.result(editor.inline(URI, 1, 0))
    assert len(parts(editor)) == before


def test_while_typing_nothing_is_streamed(editor: Editor):
    editor.result(ask(editor, kind=2, steps=[FIRST]))
    assert parts(editor) == []


@pytest.mark.parametrize("experimental", [None, {}, {"mercury": True}, {"mercury": {"denoising": 1}}, [1], "mercury"])
def test_other_clients_get_one_answer_with_lsp_fields_only(experimental: Any):
    with Editor() as editor:
        editor.initialize({"experimental": experimental})
        [item] = editor.result(ask(editor, text="a = 1", steps=[FIRST, SECOND], unsure_from=2))["items"]
        assert parts(editor) == []
        assert set(item) == {"insertText", "range", "command"}


@pytest.mark.parametrize(
    ("text", "unsure_from", "unit"), [("a = 1", 4, 4), ("'😀' + x", 6, 7), ("a = 1", 0, 0), ("a = 1  ", 5, None)]
)
def test_an_item_says_from_which_unit_it_is_unsure(editor: Editor, text: str, unsure_from: int, unit: int | None):
    [item] = editor.result(ask(editor, text=text, unsure_from=unsure_from))["items"]
    assert item["mercury"].pop("unsureFrom", None) == unit
    assert set(item["mercury"]) == {"confidence", "steps", "elapsedMs"}
