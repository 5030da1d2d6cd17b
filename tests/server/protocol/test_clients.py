"""Each test replays a client from its first message to an accepted suggestion, in the order of its source code."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mercury_lsp.statistics import store
from tests.support.editor import Editor, place, script, span

URI = "file:///work/sample.py"
LINE = script(text="value(😀)") + "x = "
EDIT = "textDocument/copilotInlineEdit"
NEOVIM = {
    "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]},
    "textDocument": {"completion": {}, "codeAction": {}},
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {"applyEdit": True, "configuration": True, "didChangeConfiguration": {"dynamicRegistration": False}},
}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@contextmanager
def client(plugin: str, capabilities: Any, settings: Any = None, text: str = LINE, **params: Any) -> Iterator[Editor]:
    """A client made for Copilot's server, with the sample open; checks that it gets no error and no warning."""
    about = {
        "editorInfo": {"name": "Neovim", "version": "0.12.0"},
        "editorPluginInfo": {"name": plugin, "version": "1"},
    }
    with Editor({"workspace/configuration": lambda _: [None]}) as editor:
        editor.initialize(capabilities, about, clientInfo={"name": plugin}, **params)
        editor.notify("workspace/didChangeConfiguration", {"settings": settings or {}})
        editor.receive_all()
        editor.open(URI, text)
        yield editor
        editor.wait_for("window/logMessage")  # the answers may overtake it
        assert editor.received("window/showMessage") == []
        assert [message["message"] for message in editor.received("window/logMessage")] == ["loaded fake on cpu"]
        assert "error" not in str([reply for replies in editor.replies.values() for reply in replies])


def edits(editor: Editor, version: int, column: int, **more: Any) -> list[dict[str, Any]]:
    return editor.result(ask_edits(editor, version, column, **more))["edits"]


def ask_edits(editor: Editor, version: int, column: int, **more: Any) -> int:
    return editor.ask(EDIT, place(URI, 1, column) | {"textDocument": {"uri": URI, "version": version}} | more)


def insert(editor: Editor, version: int, column: int, text: str) -> None:
    editor.change(URI, version, {"range": span((1, column), (1, column)), "text": text})


def outcome() -> tuple[str, str, int]:
    """Client, outcome and saved characters of the one suggestion that was counted."""
    [row] = store.read(store.default_path(), 0)
    return row.client, row.outcome, row.saved


def test_sidekick_nvim_applies_all_edits_of_its_version_and_then_runs_their_commands():
    """It requests an edit after a pause; the next key cancels the request."""
    slow = script(ms=300, text="value(😀)") + "x = "  # so that the cancellation comes before the answer
    with client("sidekick.nvim", NEOVIM, {"telemetry": {"telemetryLevel": "all"}}, slow) as editor:
        editor.notify("textDocument/didFocus", {"textDocument": {"uri": URI}})
        older = ask_edits(editor, 1, 4, context={"triggerKind": 2})
        editor.notify("$/cancelRequest", {"id": older})
        insert(editor, 2, 4, "v")
        found = edits(editor, 2, 5, context={"triggerKind": 2})
        reply = editor.reply(older)
        assert reply.get("result") or reply["error"]["code"] == -32800
        assert [(edit["textDocument"], edit["text"]) for edit in found] == [({"uri": URI, "version": 2}, "value(😀)")]
        editor.change(URI, 3, *({"range": edit["range"], "text": edit["text"]} for edit in found))
        for edit in found:
            assert editor.request("workspace/executeCommand", dict(edit["command"])) is None
    assert outcome() == ("sidekick.nvim", "accepted", 8)


def test_copilot_lsp_shows_the_first_edit_and_does_not_report_its_acceptance():
    """It cancels nothing, and would show the user an error, so a superseded request must not end in one."""
    with client("copilot_ls", NEOVIM, {"nextEditSuggestions": {"enabled": True}}) as editor:
        editor.notify("textDocument/didFocus", {"textDocument": {"uri": URI}})
        editor.change(URI, 2, {"range": span((0, 0), (1, 0)), "text": script(ms=60_000)})
        older = ask_edits(editor, 2, 4)
        editor.change(URI, 3, {"range": span((0, 0), (1, 0)), "text": script(text="value(😀)")})
        [edit] = edits(editor, 3, 4)
        assert editor.result(older) == {"edits": []}
        editor.notify("textDocument/didShowInlineEdit", {"item": {"command": edit["command"]}})
        editor.change(URI, 4, {"range": edit["range"], "text": edit["text"]})
    assert outcome() == ("copilot_ls", "accepted", 8)


def test_cursortab_sends_whole_documents_and_rewrites_lines():
    """It takes the version from the last change, and in didFocus it spells the uri differently from its editor."""
    with client("copilot", NEOVIM) as editor:
        editor.notify("textDocument/didFocus", {"textDocument": {"uri": "file:///work/other file.py"}})
        editor.change(URI, 2, {"range": span((0, 0), (2147483647, 0)), "text": LINE})
        [edit] = edits(editor, 2, 4)
        editor.change(URI, 3, {"range": span((1, 0), (1, 4)), "text": "x = " + edit["text"]})
        assert editor.text(URI) == LINE + "value(😀)"
    assert outcome() == ("copilot", "accepted", 8)


EMACS = {"workspace": {"workspaceFolders": True}, "textDocument": {"inlineCompletion": {"dynamicRegistration": False}}}


def test_copilot_el_reports_what_it_shows_and_accepts_before_the_text_changes():
    """Ghost text and next edits have separate timers; lengths are in Emacs characters, so only edits count."""
    options = {"formattingOptions": {"tabSize": 4, "insertSpaces": True}}
    with client("copilot.el", EMACS | {"copilot": {"ipCodeCitation": False}}, rootUri="file:///work") as editor:
        next_edit = ask_edits(editor, 1, 4)
        [item] = editor.items(URI, 1, 4, **options)
        [edit] = editor.result(next_edit)["edits"]
        assert (edit["textDocument"]["version"], edit["command"]) == (1, item["command"])
        for _ in range(2):  # shown again by each command that moves nothing
            editor.notify("textDocument/didShowCompletion", {"item": {"command": item["command"]}})
        part = {"item": {"command": item["command"]}, "acceptedLength": len("x = value(")}
        editor.notify("textDocument/didPartiallyAcceptCompletion", part)
        insert(editor, 2, 4, "value(")
        [rest] = editor.items(URI, 1, 10, **options)
        assert rest["insertText"].removeprefix("x = value(") == "😀)"
        editor.notify("textDocument/didShowCompletion", {"item": {"command": rest["command"]}})
        taken = editor.ask("workspace/executeCommand", rest["command"])
        insert(editor, 3, 10, "😀)")
        assert editor.result(taken) is None
    assert outcome() == ("copilot.el", "accepted", 8)


def test_copilot_lua_uses_the_older_requests_and_replaces_the_whole_line():
    """The version is its own tick; what it accepts it also rejects if it is left in its list."""
    with client("copilot.lua", NEOVIM | {"workspace": {"workspaceFolders": True}}) as editor:
        assert editor.request("checkStatus", {})["status"] == "OK"
        at = {"uri": URI, "version": 7, "relativePath": "sample.py", "insertSpaces": True, "tabSize": 4}
        where = {"line": 1, "character": 4}
        params = {"doc": at | {"indentSize": 4, "position": where}, "textDocument": {"uri": URI}, "position": where}
        [found] = editor.request("getCompletions", params)["completions"]
        editor.request("notifyShown", {"uuid": found["uuid"]})
        cycled = editor.request("getCompletionsCycling", params)["completions"]
        assert [each["displayText"] for each in cycled] == ["value(😀)"]
        units = len(found["text"].encode("utf-16-le")) // 2
        editor.request("notifyAccepted", {"uuid": found["uuid"], "acceptedLength": units})
        editor.change(URI, 2, {"range": found["range"], "text": found["text"]})
        assert editor.text(URI) == LINE + "value(😀)"
    assert outcome() == ("copilot.lua", "accepted", 8)


def test_blink_copilot_asks_again_as_if_invoked_and_reports_nothing():
    """It lists the answers to both requests, each text once."""
    with client("blink-copilot", NEOVIM) as editor:
        more = {"formattingOptions": {"tabSize": 4, "insertSpaces": True}}
        shown = [editor.items(URI, 1, 4, kind, **more) for kind in (2, 1)]
        assert [item["insertText"] for items in shown for item in items] == ["x = value(😀)"] * 2
        editor.change(URI, 2, {"range": shown[0][0]["range"], "text": "x = value(😀)"})
    assert outcome() == ("blink-copilot", "accepted", 8)
