"""The dialect of clients made for Copilot's language server, in the sequences of their source code."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.editor import Editor, Refused, place, script, span

INFO = {
    "editorInfo": {"name": "Neovim", "version": "0.11.4"},
    "editorPluginInfo": {"name": "copilot.lua", "version": "1.515.0"},
}
EDIT = "textDocument/copilotInlineEdit"


@pytest.fixture(scope="module")
def shared() -> Iterator[Editor]:
    with Editor() as made:
        made.initialize({"workspace": {"workspaceFolders": True}}, INFO)
        made.until(lambda: [each for each in made.received("didChangeStatus") if not each["busy"]])
        yield made


@pytest.fixture
def editor(shared: Editor) -> Editor:
    return shared.quiet()


def doc(uri: str, line: int, column: int) -> dict[str, Any]:
    """A document and position as copilot.lua and copilot.el send them in the older requests."""
    more = {"relativePath": "x.py", "insertSpaces": True, "tabSize": 4, "indentSize": 4, "version": 7}
    return {"uri": uri, "position": {"line": line, "character": column}} | more


# Getting acquainted


@pytest.mark.parametrize(
    "options",
    [INFO, INFO | {"networkProxy": {"host": "localhost"}}, INFO | {"copilotIntegrationId": "x"}],
    ids=["copilot.lua", "copilot.el behind a proxy", "others"],
)
def test_options_that_are_not_ours_are_left_alone(options: dict[str, Any]):
    with Editor() as editor:
        editor.initialize(options=options)
        settings = {"telemetry": {"telemetryLevel": "all"}, "github": {"copilot": {"selectedCompletionModel": ""}}}
        editor.notify("workspace/didChangeConfiguration", {"settings": settings | {"disabledLanguages": []}})
        assert len(editor.items(editor.opened("x = "), 0, 4)) == 1
        assert editor.received("window/showMessage") == []


@pytest.mark.parametrize("params", [{}, None, {"_": True}, {"options": {"localChecksOnly": True}, "_": True}], ids=repr)
@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("checkStatus", {"status": "OK", "user": "local"}),
        ("signIn", {"status": "AlreadySignedIn", "user": "local"}),
        ("signInInitiate", {"status": "AlreadySignedIn", "user": "local"}),
        ("signInConfirm", {"status": "OK", "user": "local"}),
        ("signOut", {"status": "OK", "user": "local"}),
        ("setEditorInfo", "OK"),
    ],
)
def test_every_client_is_signed_in(editor: Editor, method: str, expected: Any, params: Any):
    assert editor.request(method, params) == expected


def test_the_version_and_the_model_are_reported(editor: Editor):
    assert editor.request("getVersion", {})["version"]
    [model] = editor.request("copilot/models", {"_": True})
    assert (model["id"], model["scopes"]) == ("fake", ["completion"])


def test_the_status_is_sent_in_both_forms():
    with Editor() as editor:
        editor.initialize(options=INFO | {"mercury": {"model": "missing"}})
        newer = editor.wait_for("didChangeStatus", 2)
        older = editor.wait_for("statusNotification", 2)
        assert newer["kind"] == "Error" and newer["busy"] is False and "missing" in newer["message"]
        assert older == {"status": "Error", "message": newer["message"]}
        assert editor.received("statusNotification")[0]["status"] == "InProgress"


# Inline completion: copilot.el, blink-copilot, nvim-lspconfig's copilot


def test_items_reach_from_the_start_of_the_line(editor: Editor):
    uri = editor.opened(script(text="value") + "    x𝒳 = ")
    more = {"formattingOptions": {"tabSize": 4, "insertSpaces": True}}
    [item] = editor.items(uri, 1, 10, **more)
    assert item["range"] == span((1, 0), (1, 10))
    assert item["insertText"] == "    x𝒳 = value"


@pytest.mark.parametrize("version", [None, 1, 0, 99, "1"])
def test_a_request_for_ghost_text_may_name_a_version_of_any_kind(editor: Editor, version: Any):
    """LSP has no version there; Copilot's server accepts one."""
    uri = editor.opened("x = ")
    assert len(editor.items(uri, 0, 4, textDocument={"uri": uri, "version": version})) == 1


def test_shown_and_partly_accepted_items_may_be_reported_by_their_command_alone(editor: Editor):
    uri = editor.opened(script(text="value(1)") + "x = ")
    [item] = editor.items(uri, 1, 4)
    for sent in (item, {"command": item["command"]}):
        editor.notify("textDocument/didShowCompletion", {"item": sent})
        editor.notify("textDocument/didPartiallyAcceptCompletion", {"item": sent, "acceptedLength": 9})
    editor.change(uri, 2, {"range": span((1, 4), (1, 4)), "text": "value"})
    [rest] = editor.items(uri, 1, 9)
    assert rest["insertText"] == "x = value(1)"
    assert rest["command"]["arguments"] == item["command"]["arguments"]


@pytest.mark.parametrize(
    "reported", [len("x = 😀(") + 1, len("x = 😀("), 0, 10**9], ids=["UTF-16", "characters", "0", "more"]
)
def test_the_rest_of_a_partly_accepted_item_follows_from_the_edit_not_the_reported_length(
    editor: Editor, reported: int
):
    """The protocol counts UTF-16 units; one client counts characters, another reports the whole length for a word."""
    uri = editor.opened(script(text="😀(😀)") + "x = ")
    [item] = editor.items(uri, 1, 4)
    editor.notify("textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": reported})
    editor.change(uri, 2, {"range": span((1, 4), (1, 4)), "text": "😀("})
    [rest] = editor.items(uri, 1, 7)
    assert (rest["insertText"], rest["range"]) == ("x = 😀(😀)", span((1, 0), (1, 7)))
    assert rest["command"] == item["command"]


def test_focus_may_come_with_or_without_a_document(editor: Editor):
    uri = editor.opened("x = ")
    for params in ({"textDocument": {"uri": uri}}, {}, {"textDocument": {"uri": "file:///nowhere"}}):
        editor.notify("textDocument/didFocus", params)
    editor.receive_all()
    assert editor.received("window/logMessage") == []


# Next edits: sidekick.nvim, copilot-lsp, copilot.el, cursortab


def edits(editor: Editor, uri: str, line: int, column: int, version: Any = 1, **more: Any) -> list[dict[str, Any]]:
    document = {"uri": uri, "version": version}
    return editor.request(EDIT, place(uri, line, column) | {"textDocument": document} | more)["edits"]


def test_the_fill_at_the_cursor_is_an_edit_of_the_version_asked_about(editor: Editor):
    uri = editor.opened(script(text="value") + "x = ")
    [edit] = edits(editor, uri, 1, 4, version=42, context={"triggerKind": 2})
    assert edit["textDocument"] == {"uri": uri, "version": 42}
    assert (edit["text"], edit["range"]) == ("value", span((1, 4), (1, 4)))
    assert edit["command"]["command"] in editor.capabilities["executeCommandProvider"]["commands"]


def test_uris_come_back_byte_for_byte(editor: Editor):
    uri = "file:///tmp/A%20b/%C3%A9é:x.py"
    editor.open(uri, "x = ")
    [edit] = edits(editor, uri, 0, 4)
    assert edit["textDocument"]["uri"] == uri


def test_with_nothing_to_offer_the_list_is_empty_and_not_null(editor: Editor):
    assert edits(editor, editor.opened(script(text="") + "x = "), 1, 4) == []
    assert edits(editor, editor.opened(script(confidence=0.2) + "x = "), 1, 4) == []


def test_at_the_start_of_a_line_the_edit_covers_the_whole_line(editor: Editor):
    uri = editor.opened(script(text="a = 1\n") + "b = 2\nc = 3")
    [edit] = edits(editor, uri, 1, 0)
    assert edit["range"] == span((1, 0), (1, 5))
    assert edit["text"].startswith("a = 1") and edit["text"].endswith("b = 2")


def test_a_superseded_edit_request_gets_an_empty_answer_because_one_client_waits_and_one_shows_errors(editor: Editor):
    uri = editor.opened(script(ms=60_000) + "x = ")
    older = editor.ask(EDIT, place(uri, 1, 4))
    editor.change(uri, 2, {"range": span((0, 0), (1, 0)), "text": ""})
    assert len(edits(editor, uri, 0, 4, version=2)) == 1
    assert editor.result(older) == {"edits": []}


def test_ghost_text_and_a_next_edit_asked_at_one_cursor_are_both_answered(editor: Editor):
    """sidekick.nvim beside a plugin for ghost text: two features on one client."""
    uri = editor.opened(script(ms=300, text="value") + "x = ")
    edit, ghost = editor.ask(EDIT, place(uri, 1, 4)), editor.inline(uri, 1, 4)
    [found], [item] = editor.result(edit)["edits"], editor.result(ghost)["items"]
    assert (found["text"], item["insertText"]) == ("value", "x = value")
    assert found["command"] == item["command"]


def test_a_shown_and_accepted_edit_may_be_reported_by_a_notification(editor: Editor):
    """copilot.el runs the command as a notification."""
    uri = editor.opened(script(text="value") + "x = ")
    [edit] = edits(editor, uri, 1, 4)
    editor.notify("textDocument/didShowInlineEdit", {"item": {"command": edit["command"]}})
    editor.notify("workspace/executeCommand", {key: edit["command"][key] for key in ("command", "arguments")})
    editor.change(uri, 2, {"range": span((1, 4), (1, 4)), "text": "v"})
    [again] = editor.items(uri, 1, 5)
    assert again["command"]["arguments"] != edit["command"]["arguments"]


def test_a_whole_document_may_be_sent_again_as_a_range_without_end_and_the_same_version(editor: Editor):
    """cursortab does so before it asks."""
    uri = editor.opened(script(text="value(1)") + "x = ")
    [item] = editor.items(uri, 1, 4)
    text = script(text="value(1)") + "x = 𝒳\n"
    editor.change(uri, 1, {"range": span((0, 0), (2147483647, 0)), "text": text})
    assert editor.text(uri) == text
    assert item["insertText"] == "x = value(1)"


# The older requests: copilot.lua


def test_older_completions_have_whole_lines_and_a_display_text(editor: Editor):
    uri = editor.opened(script(text="value") + "  x = ")
    where = doc(uri, 1, 6)
    params = {"doc": where, "textDocument": {"uri": uri, "version": 7, "relativePath": "x.py"}, "_": True}
    [found] = editor.request("getCompletions", params | {"position": where["position"]})["completions"]
    assert (found["text"], found["displayText"]) == ("  x = value", "value")
    assert found["range"] == span((1, 0), (1, 6))
    assert (found["position"], found["docVersion"]) == ({"line": 1, "character": 6}, 7)
    for method, params in (
        ("notifyShown", {"uuid": found["uuid"]}),
        ("notifyAccepted", {"uuid": found["uuid"], "acceptedLength": 11}),
        ("notifyAccepted", {"uuid": found["uuid"]}),
        ("notifyRejected", {"uuids": [found["uuid"]]}),
    ):
        assert editor.request(method, params | {"_": True}) == "OK"


def test_cycling_returns_every_suggestion(editor: Editor):
    uri = editor.opened(script(text="a = 1\n    b = 2", confidence=0.2) + "def f():\n    ")
    assert editor.request("getCompletions", {"doc": doc(uri, 2, 4)})["completions"] == []
    found = editor.request("getCompletionsCycling", {"doc": doc(uri, 2, 4)})["completions"]
    assert [each["displayText"] for each in found] == ["a = 1\n    b = 2", "a = 1"]
    assert len({each["uuid"] for each in found}) == 2


# Messages of the wrong shape


@pytest.mark.parametrize(
    ("method", "params"),
    [
        (EDIT, {"textDocument": {"uri": 3}, "position": {"line": 0, "character": 0}}),
        (EDIT, {"textDocument": {"uri": "x", "version": "1"}, "position": {"line": 0, "character": 0}}),
        ("getCompletions", {}),
        ("getCompletions", {"doc": []}),
        ("notifyShown", {"uuid": None}),
        ("notifyRejected", {"uuids": 3}),
        ("mercury/status", {"textDocument": 3}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_malformed_parameters_are_refused_naming_what_is_wrong(editor: Editor, method: str, params: Any):
    with pytest.raises(Refused, match=r"\$") as refused:
        editor.request(method, params)
    assert refused.value.code == -32602
