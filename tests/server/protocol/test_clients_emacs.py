"""Emacs: lsp-mode's ghost text, and eglot's completion at point and code actions, following their source code."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.clients import FILL, URI, Buffer, client, dropped, outcome
from tests.support.editor import Editor, script

ENCODINGS = {"positionEncodings": ["utf-32", "utf-8", "utf-16"]}
FOLDER = {"uri": "file:///work", "name": "work"}
COMPLETION = "textDocument/completion"
BLOCK = "if a:\n        b(😀)"


# lsp-mode 10: lsp-mode.el, lsp-inline-completion.el, lsp-protocol.el

LSP_MODE = {
    "general": ENCODINGS,
    "textDocument": {
        "codeAction": {"dynamicRegistration": True, "codeActionLiteralSupport": {"codeActionKind": {"valueSet": [""]}}},
        "completion": {"completionItem": {"insertTextModeSupport": {"valueSet": [1, 2]}}, "contextSupport": True},
        "inlineCompletion": None,
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "workspaceEdit": {"documentChanges": True},
        "workspaceFolders": True,
    },
}


def lsp_mode(state: Path) -> Any:
    """It answers with empty settings, and gives initialize a progress token."""
    return client(
        LSP_MODE,
        state,
        answers={"workspace/configuration": lambda _: [{}]},
        clientInfo={"name": "emacs", "version": "GNU Emacs 30.1"},
        rootPath="/work",
        rootUri="file:///work",
        workspaceFolders=[FOLDER],
        workDoneToken="1",
    )


def lsp_mode_accepts(editor: Editor, buffer: Buffer, item: dict[str, Any]) -> None:
    """It deletes a non-empty range first, sends every change at once, and waits for the command."""
    start, end = buffer.region(item["range"])
    if start != end:
        buffer.edit((start, end, ""))
    buffer.edit((start, start, item["insertText"]))
    command = {key: item["command"][key] for key in ("command", "arguments")}
    assert editor.request("workspace/executeCommand", command) is None


def test_lsp_mode_cancels_at_the_next_key_and_shows_answers_that_come_in_a_pause(tmp_path: Path):
    """It would show any error to a waiting user, but ignores answers to cancelled requests."""
    with lsp_mode(tmp_path) as editor, Buffer(editor, script(ms=60_000) + "x = ") as buffer:
        assert "completionProvider" not in editor.capabilities
        waiting = editor.inline(URI, 1, 4)
        editor.notify("$/cancelRequest", {"id": waiting})
        assert dropped(editor, waiting)
        buffer.edit((0, buffer.text.index("\n"), script(text=FILL).rstrip()))
        buffer.cursor = len(buffer.text)
        [item] = editor.items(URI, 1, 4)
        lsp_mode_accepts(editor, buffer, item)
        assert buffer.line == "x = " + FILL
    assert outcome(tmp_path) == ("accepted", 8)


def test_lsp_mode_cycles_through_invoked_suggestions(tmp_path: Path):
    with lsp_mode(tmp_path) as editor, Buffer(editor, script(text=BLOCK) + "def f():\n    ") as buffer:
        items = editor.items(URI, 2, 4, kind=1)
        assert [item["insertText"] for item in items] == [BLOCK, "if a:"]
        lsp_mode_accepts(editor, buffer, items[1])
        assert buffer.line == "def f():\n    if a:"


def test_lsp_mode_reports_an_empty_list_as_no_suggestion(tmp_path: Path):
    """It takes anything but a list, empty or not, for an error."""
    with lsp_mode(tmp_path) as editor, Buffer(editor, script(text="") + "x = "):
        answer = editor.result(editor.inline(URI, 1, 4, kind=1))
        assert answer == {"items": []}


# eglot 1.24: eglot.el

EGLOT = {
    "general": ENCODINGS,
    "textDocument": {
        "codeAction": {
            "dynamicRegistration": False,
            "resolveSupport": {"properties": ["edit", "command"]},
            "dataSupport": True,
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor", "refactor.rewrite"]}},
            "isPreferredSupport": True,
        },
        "completion": {
            "dynamicRegistration": False,
            "completionItem": {
                "snippetSupport": False,
                "documentationFormat": ["plaintext"],
                "resolveSupport": {"properties": ["documentation", "details", "additionalTextEdits"]},
                "insertReplaceSupport": True,
            },
            "contextSupport": True,
        },
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "workspaceEdit": {"documentChanges": True, "failureHandling": "abort"},
        "workspaceFolders": True,
    },
    "experimental": {},
}


def eglot(state: Path, **more: Any) -> Any:
    """It sends shutdown without parameters, and exit with some."""
    return client(
        EGLOT,
        state,
        clientInfo={"name": "Eglot", "version": "1.24"},
        rootPath="/work/",
        rootUri="file:///work",
        workspaceFolders=[FOLDER],
        last=({"method": "shutdown", "id": 9}, {"method": "exit", "params": {}}),
        **more,
    )


def eglot_completes(buffer: Buffer, item: dict[str, Any]) -> None:
    """It inserts the label, removes it and applies the edit to the original text, in one notification."""
    asked_at = buffer.cursor
    start, end = buffer.region(item["textEdit"]["range"])
    label = item["label"].lstrip()
    typed = buffer.text[start:asked_at]
    assert label.startswith(typed), "the candidate would not match what was typed"
    completed = label[len(typed) :]
    buffer.edit(
        (asked_at, asked_at, completed),
        (asked_at, asked_at + len(completed), ""),
        (start, end, ""),
        (start, start, item["textEdit"]["newText"]),
    )


@pytest.mark.parametrize(("before", "fill"), [("x = ", FILL), ("def f():\n    ", BLOCK)], ids=["a line", "two lines"])
def test_eglot_completes_at_point_through_the_label(tmp_path: Path, before: str, fill: str):
    """It pushes empty settings, and does not run the command."""
    with eglot(tmp_path) as editor, Buffer(editor, script(text=fill) + before) as buffer:
        editor.notify("workspace/didChangeConfiguration", {"settings": {}})
        context = {"context": {"triggerKind": 2, "triggerCharacter": " "}}
        given_up = editor.ask(COMPLETION, buffer.here | context)
        editor.notify("$/cancelRequest", {"id": given_up})
        answer = editor.request(COMPLETION, buffer.here | context)
        assert answer["isIncomplete"] is True  # else it would keep the list while the user types
        [item] = answer["items"]
        assert item["insertTextFormat"] == 1 and "data" not in item
        eglot_completes(buffer, item)
        assert buffer.line == before + fill
        dropped(editor, given_up)
    assert outcome(tmp_path) == ("accepted", len(fill))


def test_eglot_completes_a_partial_word(tmp_path: Path):
    with eglot(tmp_path) as editor, Buffer(editor, script(text="lue(😀)") + "x = va") as buffer:
        [item] = editor.request(COMPLETION, buffer.here | {"context": {"triggerKind": 1}})["items"]
        eglot_completes(buffer, item)
        assert buffer.line == "x = value(😀)"
    assert outcome(tmp_path)[0] == "accepted"


def test_settings_in_eglots_initialization_options_outlast_the_empty_ones_it_pushes(tmp_path: Path):
    with eglot(tmp_path, options={"disabledLanguages": ["python"]}) as editor, Buffer(editor) as buffer:
        editor.notify("workspace/didChangeConfiguration", {"settings": {}})
        editor.receive_all()
        assert editor.request(COMPLETION, buffer.here | {"context": {"triggerKind": 1}})["items"] == []


def test_eglot_runs_the_code_action_and_applies_the_edit_to_its_version(tmp_path: Path):
    """The version counts changes, not notifications."""
    with eglot(tmp_path) as editor, Buffer(editor, script(text=FILL) + "x") as buffer:
        at = buffer.cursor
        buffer.edit((at, at, " "), (at + 1, at + 1, "="), (at + 2, at + 2, " "))

        def apply(params: Any) -> Any:
            [change] = params["edit"]["documentChanges"]
            assert change["textDocument"] == {"uri": URI, "version": buffer.version}
            for edit in change["edits"]:
                buffer.put(edit["range"], edit["newText"])
            return {"applied": True}

        editor.answers |= {"workspace/applyEdit": apply, "window/showDocument": lambda _: {"success": True}}
        place = {"start": buffer.here["position"], "end": buffer.here["position"]}
        params = {"textDocument": {"uri": URI}, "range": place, "context": {"diagnostics": []}}
        [action] = editor.request("textDocument/codeAction", params)
        assert "data" not in action and "edit" not in action
        command = {key: action["command"][key] for key in ("command", "arguments")}
        assert editor.request("workspace/executeCommand", command) == {"applied": True}
        assert buffer.line == "x = " + FILL
        [shown] = editor.received("window/showDocument")
        assert shown["selection"]["start"] == buffer.position(buffer.cursor)
