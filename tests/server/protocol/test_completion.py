"""textDocument/completion, for clients that have no inline completion: Helix, Kate, older Neovim."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.editor import Editor, Refused, place, script, span

HELIX = {
    "textDocument": {
        "completion": {
            "completionItem": {"documentationFormat": ["markdown"], "insertTextModeSupport": {"valueSet": [1, 2]}}
        }
    }
}


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    with Editor() as made:
        yield made.initialize(HELIX)


def complete(editor: Editor, text: str, column: int, **more: Any) -> dict[str, Any]:
    """The popup's list at a column of the last line."""
    uri = editor.opened(text)
    return editor.request("textDocument/completion", place(uri, text.count("\n"), column) | more)


@pytest.mark.parametrize(
    ("capabilities", "options", "expected"),
    [
        (HELIX, None, True),
        ({}, None, False),
        ({"textDocument": {"completion": {}, "inlineCompletion": {}}}, None, False),
        ({"textDocument": {"completion": {}, "inlineCompletion": None}}, None, False),
        ({"textDocument": {"completion": {}, "inlineCompletion": False}}, None, True),
        (HELIX, {"editorInfo": {"name": "Neovim", "version": "0.11.4"}}, False),
    ],
    ids=[
        "only completion",
        "neither",
        "inline completion too",
        "as lsp-mode has it",
        "said to be missing",
        "a client made for Copilot",
    ],
)
def test_completion_is_offered_to_clients_without_inline_completion(capabilities: Any, options: Any, expected: bool):
    with Editor() as editor:
        offered = editor.initialize(capabilities, options).capabilities
        assert ("completionProvider" in offered) is expected
        if not expected:
            with pytest.raises(Refused) as refused:
                editor.request("textDocument/completion", place("file:///x.py", 0, 0))
            assert refused.value.code == -32601


def test_the_item_names_its_source_and_comes_first(editor: Editor):
    [item] = complete(editor, "x = ", 4)["items"]
    assert item["detail"] == "Mercury"
    assert item["sortText"] < min("0", "A", "_", "a")


def test_the_item_replaces_and_extends_the_word_before_the_cursor(editor: Editor):
    [item] = complete(editor, script(text="nt(x)") + "  pri", 5)["items"]
    assert item["textEdit"] == {"range": span((1, 2), (1, 5)), "newText": "print(x)"}
    assert item["insertText"] == item["filterText"] == item["label"] == "print(x)"


def test_a_fill_of_several_lines_shows_its_first_one_and_previews_all(editor: Editor):
    fill = "f(a)\n    return b"
    [item] = complete(editor, script(text=fill) + "def g(b):\n    ", 4)["items"]
    assert item["label"] == "f(a) …"
    assert item["textEdit"]["newText"] == fill
    assert item["documentation"] == {"kind": "markdown", "value": f"```python\n{fill}\n```"}


def test_a_client_that_does_not_declare_them_gets_no_markdown_and_no_insertion_mode():
    with Editor() as editor:
        editor.initialize({"textDocument": {"completion": {}}})
        [item] = complete(editor, "x = ", 4)["items"]
        assert item["documentation"] == {"kind": "plaintext", "value": "suggested"}
        assert "insertTextMode" not in item


def test_a_popup_request_leaves_the_ghost_text_of_another_plugin_alone(editor: Editor):
    """Neovim 0.11 with a popup plugin and ours: both ask at every key."""
    uri = editor.opened(script(ms=300, text="value") + "x = ")
    ghost = editor.inline(uri, 1, 4)
    [item] = editor.request("textDocument/completion", place(uri, 1, 4))["items"]
    [shown] = editor.result(ghost)["items"]
    assert (item["textEdit"]["newText"], shown["insertText"]) == ("value", "value")
    assert item["command"] == shown["command"]
