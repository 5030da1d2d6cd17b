"""Clients that show ghost text in an editor: the one built into Neovim, VS Code, and LSP4IJ in JetBrains' IDEs."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients import FILL, LINE, URI, Buffer, client, dropped, outcome
from tests.support.editor import Editor, script

AUTOMATIC = {"context": {"triggerKind": 2}}
INLINE = "textDocument/inlineCompletion"
BLOCK = "a = 1\n    b = (😀)"


def run(editor: Editor, command: dict[str, Any]) -> None:
    """Run an item's command without its title, as all these clients do."""
    assert command["command"] in editor.capabilities["executeCommandProvider"]["commands"]
    params = {"command": command["command"], "arguments": command["arguments"]}
    assert editor.request("workspace/executeCommand", params) is None


# Neovim 0.12: runtime/lua/vim/lsp/inline_completion.lua, runtime/lua/vim/lsp/protocol.lua

NEOVIM = {
    "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]},
    "textDocument": {
        "codeAction": {"dynamicRegistration": True, "codeActionLiteralSupport": {"codeActionKind": {"valueSet": [""]}}},
        "completion": {"completionItem": {"snippetSupport": True}, "contextSupport": True},
        "inlineCompletion": {"dynamicRegistration": False},
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": False},
        "workspaceFolders": True,
    },
}


class Completor:
    """What it shows: the answer to any request replaces it, an error leaves it, an empty list clears it."""

    def __init__(self, editor: Editor, buffer: Buffer):
        self.shown: dict[str, Any] | None = None
        self._editor, self._buffer = editor, buffer
        self._pending: list[Any] = []

    def ask(self) -> None:
        """200 ms after the latest key; what was asked before is not cancelled."""
        self._pending.append(self._editor.ask(INLINE, self._buffer.here | AUTOMATIC))

    def hear(self) -> list[str]:
        """Take in all that is still to come; what was shown by then, in that order."""
        seen = []
        for msg_id in self._pending:
            reply = self._editor.reply(msg_id)
            if reply.get("result") is not None:
                items = reply["result"]["items"]
                self.shown = items[0] if items else None
                seen.append(items[0]["insertText"] if items else "")
        self._pending.clear()
        return seen

    def accept(self) -> None:
        """Pending requests are cancelled, the range is replaced, and the command run."""
        self.leave_insert_mode()
        assert self.shown is not None
        self._buffer.put(self.shown["range"], self.shown["insertText"])
        run(self._editor, self.shown["command"])

    def leave_insert_mode(self) -> None:
        """Pending requests are cancelled."""
        for msg_id in self._pending:
            self._editor.notify("$/cancelRequest", {"id": msg_id})


def neovim(state: Path) -> Any:
    return client(NEOVIM, state, clientInfo={"name": "Neovim", "version": "0.12.0"}, rootUri="file:///work")


def test_neovims_client_never_shows_a_superseded_answer(tmp_path: Path):
    """It would show the answer that comes last, and cancels nothing while the user types."""
    with neovim(tmp_path) as editor, Buffer(editor, script(ms=100, text=FILL) + "x = ") as buffer:
        completor = Completor(editor, buffer)
        completor.ask()
        buffer.edit((0, buffer.text.index("\n"), script(text="new(😀)").rstrip()))
        buffer.cursor = len(buffer.text)
        completor.ask()
        assert completor.hear() == ["new(😀)"]
        completor.accept()
        assert buffer.line == "x = new(😀)"
    assert outcome(tmp_path) == ("accepted", 6)


def test_neovims_client_keeps_the_rest_of_a_suggestion_typed_through(tmp_path: Path):
    with neovim(tmp_path) as editor, Buffer(editor) as buffer:
        completor = Completor(editor, buffer)
        completor.ask()
        assert completor.hear() == [FILL]
        buffer.type("va")
        completor.ask()
        assert completor.hear() == [FILL[2:]]
        completor.accept()
        assert buffer.line == "x = " + FILL
    assert outcome(tmp_path) == ("accepted", 6)


def test_neovims_client_cancels_when_insert_mode_ends_and_asks_again_in_the_next(tmp_path: Path):
    with neovim(tmp_path) as editor, Buffer(editor, script(ms=60_000) + "x = ") as buffer:
        completor = Completor(editor, buffer)
        completor.ask()
        completor.leave_insert_mode()
        assert completor.hear() == []
        buffer.edit((0, buffer.text.index("\n"), script(text="").rstrip()))
        buffer.cursor = len(buffer.text)
        completor.ask()
        assert completor.hear() == [""]


# VS Code: client/src/common of vscode-languageclient 10.1: client.ts, inlineCompletion.ts, codeConverter.ts,
# protocolConverter.ts, configuration.ts, executeCommand.ts

VSCODE = {
    "general": {"positionEncodings": ["utf-16"], "staleRequestSupport": {"cancel": True, "retryOnContentModified": []}},
    "textDocument": {
        "codeAction": {"dynamicRegistration": True, "codeActionLiteralSupport": {"codeActionKind": {"valueSet": [""]}}},
        "completion": {
            "dynamicRegistration": True,
            "completionItem": {"insertTextModeSupport": {"valueSet": [1, 2]}},
            "insertTextMode": 2,
        },
        "inlineCompletion": {"dynamicRegistration": True},
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "executeCommand": {"dynamicRegistration": True},
        "workspaceEdit": {"documentChanges": True, "normalizesLineEndings": True},
        "workspaceFolders": True,
    },
}


def vscode(state: Path) -> Any:
    """Its ids start at 0; it pushes a section as soon as the server registers for it."""
    about = {"name": "Visual Studio Code", "version": "1.106.0"}
    return client(VSCODE, state, count(0), clientInfo=about, locale="en", trace="off", workspaceFolders=None)


def test_vs_code_cancels_with_every_key_and_takes_a_word_and_then_the_rest(tmp_path: Path):
    """It inserts a part without reporting it; the command runs with the last part."""
    with vscode(tmp_path) as editor, Buffer(editor) as buffer:
        assert "completionProvider" not in editor.capabilities
        registered = editor.received("client/registerCapability")[0]["registrations"]
        assert [(each["method"], each["registerOptions"]) for each in registered] == [
            ("workspace/didChangeConfiguration", {"section": "mercury"})
        ]
        editor.notify("workspace/didChangeConfiguration", {"settings": {"mercury": None}})
        [item] = editor.items(URI, 1, 4)
        buffer.type("v")
        given_up = editor.ask(INLINE, buffer.here | AUTOMATIC)
        editor.notify("$/cancelRequest", {"id": given_up})
        buffer.type("a")
        [item] = editor.result(editor.ask(INLINE, buffer.here | AUTOMATIC))["items"]
        dropped(editor, given_up)
        assert item["insertText"] == FILL[2:]
        buffer.put(item["range"], "lue")
        [item] = editor.result(editor.ask(INLINE, buffer.here | AUTOMATIC))["items"]
        buffer.put(item["range"], item["insertText"])
        run(editor, item["command"])
        assert buffer.line == "x = " + FILL
    assert outcome(tmp_path) == ("accepted", 6)


def test_vs_code_extends_the_item_selected_in_its_popup(tmp_path: Path):
    """The item replaces the range that the popup's item would replace."""
    with vscode(tmp_path) as editor, Buffer(editor, script(text="nt(😀)") + "pri") as buffer:
        word = {"start": buffer.position(buffer.cursor - 3), "end": buffer.here["position"]}
        context = {"triggerKind": 2, "selectedCompletionInfo": {"range": word, "text": "print"}}
        [item] = editor.items(URI, 1, 3, context=context)
        buffer.put(item["range"], item["insertText"])
        run(editor, item["command"])
        assert buffer.line == "print(😀)"


# LSP4IJ: features/inlineCompletion/LSPInlineCompletionProvider.kt and LSPInlineCompletionSupport.java,
# internal/capabilities/ClientCapabilitiesFactory.java, internal/CancellationSupport.java, LanguageServerWrapper.java

LSP4IJ = {
    "general": {"positionEncodings": ["utf-16"], "staleRequestSupport": {"cancel": True, "retryOnContentModified": []}},
    "textDocument": {
        "codeAction": {"dynamicRegistration": True, "codeActionLiteralSupport": {"codeActionKind": {"valueSet": [""]}}},
        "completion": {
            "dynamicRegistration": True,
            "completionItem": {"snippetSupport": True, "insertTextModeSupport": {"valueSet": [1, 2]}},
        },
        "inlineCompletion": {"dynamicRegistration": True},
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "workspaceEdit": {"documentChanges": True},
        "workspaceFolders": True,
    },
}


def lsp4ij(state: Path) -> Any:
    """Its ids are strings, and it omits empty parameters."""
    return client(
        LSP4IJ,
        state,
        (str(number) for number in count(1)),
        clientInfo={"name": "IntelliJ IDEA 2026.2", "version": "262"},
        options={"effort": "low"},
        trace="off",
        workspaceFolders=[{"uri": "file:///work", "name": "work"}],
        last=({"method": "shutdown", "id": "90"}, {"method": "exit"}),
    )


def lsp4ij_shows(buffer: Buffer, item: dict[str, Any]) -> str:
    """The text that accepting inserts behind the cursor; a range that ended further on would be skipped."""
    start, end = buffer.region(item["range"])
    assert end == buffer.cursor
    assert item["insertText"].strip(), "blank items are dropped"
    return item["insertText"][buffer.cursor - start :]


@pytest.mark.parametrize(("before", "fill"), [("x = ", FILL), ("def f():\n    ", BLOCK)], ids=["a line", "two lines"])
def test_lsp4ij_inserts_the_untyped_rest_at_the_caret(tmp_path: Path, before: str, fill: str):
    """It asks 300 ms after a key, cancels when the caret has moved, and does not ask at keys that match."""
    with lsp4ij(tmp_path) as editor, Buffer(editor, script(text=fill) + before) as buffer:
        given_up = editor.ask(INLINE, buffer.here | AUTOMATIC)
        editor.notify("$/cancelRequest", {"id": given_up})
        [item] = editor.result(editor.ask(INLINE, buffer.here | AUTOMATIC))["items"]
        shown = lsp4ij_shows(buffer, item)
        buffer.type(shown[:1])
        buffer.edit((buffer.cursor, buffer.cursor, shown[1:]))
        assert buffer.line == before + fill
        dropped(editor, given_up)
    assert outcome(tmp_path) == ("accepted", len(fill) - 1)


def test_lsp4ij_sends_invoked_requests_as_automatic_ones(tmp_path: Path):
    """So its users never see unsure suggestions."""
    with lsp4ij(tmp_path) as editor, Buffer(editor, script(confidence=0.2) + LINE.rpartition("\n")[2]) as buffer:
        assert editor.result(editor.ask(INLINE, buffer.here | AUTOMATIC)) == {"items": []}
