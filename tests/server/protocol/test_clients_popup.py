"""Clients without inline completion: how they request their popup, and how they insert the chosen item."""

import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients import FILL, LINE, SHUTDOWN_AND_EXIT, Buffer, client, dropped, outcome
from tests.support.editor import Editor, script

COMPLETION = "textDocument/completion"
INVOKED, CHARACTER, INCOMPLETE = 1, 2, 3

LITERALS = {"codeActionKind": {"valueSet": ["quickfix", "refactor", "source"]}}
BLOCK = "if a:\n        b()\n    c()"


def ask(editor: Editor, buffer: Buffer, kind: int | None, **more: Any) -> Any:
    """Request the popup; returns the id. Without a kind there is no context."""
    context = {} if kind is None else {"context": {"triggerKind": kind} | more}
    return editor.ask(COMPLETION, buffer.here | context)


def only_item(editor: Editor, msg_id: Any) -> dict[str, Any]:
    """The items of a list that must be requested again as the user types."""
    answer = editor.result(msg_id)
    assert answer["isIncomplete"] is True
    [item] = answer["items"]
    return item


# Helix: helix-lsp/src/client.rs, helix-term/src/handlers/completion/request.rs, helix-term/src/ui/completion.rs

HELIX = {
    "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]},
    "textDocument": {
        "completion": {
            "completionItem": {
                "snippetSupport": True,
                "resolveSupport": {"properties": ["documentation", "detail", "additionalTextEdits"]},
                "insertReplaceSupport": True,
                "deprecatedSupport": True,
                "tagSupport": {"valueSet": [1]},
            },
            "completionItemKind": {},
        },
        "codeAction": {"codeActionLiteralSupport": LITERALS, "dataSupport": True},
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": False},
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "workspaceEdit": {"documentChanges": True},
    },
}


def helix(state: Path) -> Any:
    """Its ids start at 0; it pushes its options as settings; it ends without waiting, and without parameters."""
    options = {"effort": "low"}
    return client(HELIX, state, count(0), options=options, clientInfo={"name": "helix"}, last=SHUTDOWN_AND_EXIT)


def test_helix_asks_again_with_every_key_and_inserts_over_the_word(tmp_path: Path):
    """It cancels nothing and logs errors; it inserts text unchanged, and does not run the command."""
    with helix(tmp_path) as editor:
        editor.notify("workspace/didChangeConfiguration", {"settings": {"effort": "low"}})
        with Buffer(editor) as buffer:
            shown = only_item(editor, ask(editor, buffer, CHARACTER, triggerCharacter=" "))
            buffer.type("v")
            assert shown["filterText"].startswith("v")
            overtaken = ask(editor, buffer, INCOMPLETE)
            buffer.type("a")
            item = only_item(editor, ask(editor, buffer, INCOMPLETE))
            dropped(editor, overtaken)
            assert "insertTextMode" not in item and item["filterText"].startswith("va")
            assert item["documentation"]["kind"] == "plaintext"
            buffer.put(item["textEdit"]["range"], item["textEdit"]["newText"])
            assert buffer.line == "x = " + FILL
            editor.result(ask(editor, buffer, INVOKED))  # it asks once more behind what it has inserted
    assert outcome(tmp_path, shown=2) == ("accepted", 6)


def test_helix_reverts_what_was_typed_since_the_answer_before_it_inserts(tmp_path: Path):
    with helix(tmp_path) as editor, Buffer(editor) as buffer:
        item = only_item(editor, ask(editor, buffer, CHARACTER, triggerCharacter=" "))
        asked_at = buffer.cursor
        buffer.type("va")
        buffer.edit((asked_at, buffer.cursor, ""))
        buffer.put(item["textEdit"]["range"], item["textEdit"]["newText"])
        assert buffer.line == "x = " + FILL
    assert outcome(tmp_path)[0] == "accepted"


# Kate: addons/lspclient/lspclientserver.cpp and lspclientcompletion.cpp; ktexteditor's
# src/utils/codecompletionmodelcontrollerinterface.cpp

KATE = {
    "textDocument": {
        "codeAction": {"codeActionLiteralSupport": LITERALS},
        "synchronization": {"didSave": True},
        "completion": {
            "completionItem": {
                "snippetSupport": True,
                "labelDetailsSupport": True,
                "resolveSupport": {"properties": ["additionalTextEdits", "documentation"]},
            }
        },
    },
    "window": {"workDoneProgress": True},
    "workspace": {"configuration": True, "workspaceFolders": True},
}


def kate_inserts(buffer: Buffer, item: dict[str, Any]) -> None:
    """`insertText` over the word as Kate sees it, or from the edit's start if that is earlier and the text agrees."""
    before, behind = buffer.text[: buffer.cursor], buffer.text[buffer.cursor :]
    start = buffer.cursor - len(re.search(r"[\w]*$", before, re.ASCII)[0])
    end = buffer.cursor + len(re.match(r"[\w]*", behind, re.ASCII)[0])
    edit = item["textEdit"]
    if item["insertText"] == edit["newText"]:
        start = min(start, buffer.region(edit["range"])[0])
    buffer.edit((start, end, ""), (start, start, item["insertText"]))


def test_kate_inserts_the_text_over_its_own_word_and_gives_shutdown_no_id(tmp_path: Path):
    """It sends no client info and no context, and cancels its request when its popup closes."""
    farewell = ({"method": "shutdown", "params": {}}, {"method": "exit", "params": {}})
    with client(KATE, tmp_path, rootPath="/work", last=farewell) as editor, Buffer(editor, LINE + "größe(") as buffer:
        assert "codeActionProvider" not in editor.capabilities  # it does not declare that it applies edits
        closed = ask(editor, buffer, None)
        editor.notify("$/cancelRequest", {"id": closed})
        buffer.edit((buffer.cursor - 1, buffer.cursor, ""))
        item = only_item(editor, ask(editor, buffer, None))
        assert " ".join(item["label"].split()).startswith("größe")
        kate_inserts(buffer, item)
        assert buffer.line == "x = größe" + FILL
        dropped(editor, closed)


# Zed: crates/lsp/src/lsp.rs; commands of completions since its pull request 44008

ZED = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {
        "completion": {
            "dynamicRegistration": True,
            "completionItem": {
                "snippetSupport": True,
                "insertReplaceSupport": True,
                "labelDetailsSupport": True,
                "insertTextModeSupport": {"valueSet": [1, 2]},
                "documentationFormat": ["markdown", "plaintext"],
                "resolveSupport": {"properties": ["additionalTextEdits", "command", "detail", "documentation"]},
            },
            "insertTextMode": 2,
            "completionList": {"itemDefaults": ["commitCharacters", "editRange", "insertTextMode", "data"]},
            "contextSupport": True,
        },
        "codeAction": {"dynamicRegistration": True, "codeActionLiteralSupport": LITERALS, "dataSupport": True},
    },
    "experimental": {"serverStatusNotification": True, "localDocs": True},
    "window": {"workDoneProgress": True, "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}}},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "workspaceEdit": {"documentChanges": True, "snippetEditSupport": True},
        "workspaceFolders": True,
    },
}


def test_zed_gets_items_with_indentation_as_is_and_runs_the_command(tmp_path: Path):
    """It adjusts indentation by default; typing cancels the request; it does not rewrite the common prefix."""
    with client(
        ZED,
        tmp_path,
        count(0),
        options={"mercury": {"effort": "low"}},
        clientInfo={"name": "Zed"},
        last=SHUTDOWN_AND_EXIT,
    ) as editor:
        editor.notify("workspace/didChangeConfiguration", {"settings": {}})
        with Buffer(editor, script(text=BLOCK) + "def f():\n    ") as buffer:
            given_up = ask(editor, buffer, INVOKED)
            editor.notify("$/cancelRequest", {"id": given_up})
            only_item(editor, ask(editor, buffer, INVOKED))
            buffer.type("i")
            item = only_item(editor, ask(editor, buffer, INVOKED))
            assert (item["insertTextMode"], item["textEdit"]["newText"]) == (1, BLOCK)
            start, end = buffer.region(item["textEdit"]["range"])
            common = item["textEdit"]["newText"].startswith(buffer.text[start:end]) and end - start
            buffer.edit((start + common, end, item["textEdit"]["newText"][common:]))
            command = {key: item["command"][key] for key in ("command", "arguments")}
            assert command["command"] in editor.capabilities["executeCommandProvider"]["commands"]
            assert editor.request("workspace/executeCommand", command) is None
            assert buffer.line == "def f():\n    " + BLOCK
            dropped(editor, given_up)
    assert outcome(tmp_path)[0] == "accepted"


# Sublime Text's LSP: plugin/core/sessions.py, plugin/completion.py and plugin/execute_command.py

SUBLIME = {
    "general": {"staleRequestSupport": {"cancel": True, "retryOnContentModified": []}, "positionEncodings": ["utf-16"]},
    "textDocument": {
        "completion": {
            "dynamicRegistration": True,
            "completionItem": {
                "snippetSupport": True,
                "documentationFormat": ["markdown", "plaintext"],
                "insertReplaceSupport": True,
                "insertTextModeSupport": {"valueSet": [2]},
                "labelDetailsSupport": True,
            },
            "insertTextMode": 2,
            "completionList": {"itemDefaults": ["editRange", "insertTextFormat", "data"]},
        },
        "codeAction": {"dynamicRegistration": True, "codeActionLiteralSupport": LITERALS, "dataSupport": True},
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "workspaceEdit": {"documentChanges": True, "normalizesLineEndings": True, "snippetEditSupport": True},
        "workspaceFolders": True,
    },
}


def sublime(state: Path) -> Any:
    return client(SUBLIME, state, options={"effort": "low"}, clientInfo={"name": "Sublime Text LSP"}, locale="en")


def sublime_inserts(editor: Editor, buffer: Buffer, item: dict[str, Any]) -> None:
    """It erases the range and inserts the text as if typed: with the line's indentation on each new line."""
    start, end = buffer.region(item["textEdit"]["range"])
    head = buffer.text[:start].rpartition("\n")[2]
    indentation = head[: len(head) - len(head.lstrip())]
    text = item["textEdit"]["newText"].replace("\r", "").replace("\n", "\n" + indentation)
    buffer.edit((start, end, ""), (start, start, text))
    command = {key: item["command"][key] for key in ("command", "arguments")}
    assert editor.request("workspace/executeCommand", command | {"workDoneToken": "$ublime-9"}) is None


def test_sublime_text_adds_the_indentation_to_every_line_and_so_gets_lines_without_it(tmp_path: Path):
    with sublime(tmp_path) as editor, Buffer(editor, script(text=BLOCK) + "def f():\n    ") as buffer:
        item = only_item(editor, ask(editor, buffer, None))
        assert "insertTextMode" not in item
        sublime_inserts(editor, buffer, item)
        assert buffer.line == "def f():\n    " + BLOCK
    assert outcome(tmp_path)[0] == "accepted"


@pytest.mark.parametrize(("text", "shown"), [("return a\n\n\ndef g():\n    pass", "return a"), ("\ndef g():", "")])
def test_sublime_text_gets_no_line_that_is_indented_less_than_the_cursors_line(tmp_path: Path, text: str, shown: str):
    """There is no way to make it do so."""
    with sublime(tmp_path) as editor, Buffer(editor, script(text=text) + "def f(a):\n    ") as buffer:
        for item in editor.result(ask(editor, buffer, None))["items"]:
            sublime_inserts(editor, buffer, item)
        assert buffer.line == "def f(a):\n    " + shown


def test_sublime_text_closes_its_popup_and_cancels_with_the_next_key(tmp_path: Path):
    with sublime(tmp_path) as editor, Buffer(editor, script(ms=60_000) + "x = ") as buffer:
        pending = ask(editor, buffer, None)
        editor.notify("$/cancelRequest", {"id": pending})
        buffer.type("v")
        assert dropped(editor, pending)
