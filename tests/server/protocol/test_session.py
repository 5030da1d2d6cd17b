"""The server over stdio, used as editors use it; the documents script its engine."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.editor import INLINE, PATIENCE, Editor, Refused, frame, place, script, span

INVALID_PARAMS, CANCELLED = -32602, -32800


@pytest.fixture(scope="module")
def shared() -> Iterator[Editor]:
    with Editor() as made:
        yield made.initialize({"general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]}})


@pytest.fixture
def editor(shared: Editor) -> Editor:
    return shared.quiet()


@pytest.fixture
def own() -> Iterator[Editor]:
    """A server of the test's own, not yet initialized."""
    with Editor() as made:
        yield made


def texts(editor: Editor, uri: str, column: int, kind: int = 2, line: int = 1, **more: Any) -> list[str]:
    return [item["insertText"] for item in editor.items(uri, line, column, kind, **more)]


def code_of(editor: Editor, msg_id: Any) -> int:
    return editor.reply(msg_id)["error"]["code"]


# What the server says of itself


def test_utf_16_is_announced_whatever_the_client_lists_first(editor: Editor):
    assert editor.capabilities["positionEncoding"] == "utf-16"


def test_capabilities_are_incremental_sync_and_inline_completion(editor: Editor):
    sync = editor.capabilities["textDocumentSync"]
    assert (sync["openClose"], sync["change"]) == (True, 2)
    assert editor.capabilities["inlineCompletionProvider"]


def test_every_command_of_an_item_is_announced(editor: Editor):
    [item] = editor.items(editor.opened("x = "), 0, 4)
    assert item["command"]["command"] in editor.capabilities["executeCommandProvider"]["commands"]


# What an item looks like


def test_an_item_has_text_a_one_line_range_at_the_cursor_and_no_nulls(editor: Editor):
    [item] = editor.items(editor.opened("x = "), 0, 4)
    assert (item["insertText"], item["range"]) == ("suggested", span((0, 4), (0, 4)))
    assert len(item["command"]["arguments"]) == 1
    assert "null" not in json.dumps(item)


@pytest.mark.parametrize(
    "options", [None, {"editorInfo": {"name": "Neovim", "version": "0.12.0"}}], ids=["", "dialect"]
)
def test_however_it_is_asked_for_an_item_has_a_one_line_range_and_no_answer_has_a_null(own: Editor, options: Any):
    own.initialize({"experimental": {"mercury": {"confidence": True}}}, options)
    uri = own.opened(script(text="a = 1\n    b = 2") + "def f():\n    ")
    selected = {"selectedCompletionInfo": {"range": span((2, 4), (2, 4)), "text": "a"}}
    items = [item for kind in (2, 1) for item in own.items(uri, 2, 4, kind)]
    items += own.items(uri, 2, 4, context={"triggerKind": 2} | selected)
    own.change(uri, 2, {"range": span((2, 4), (2, 4)), "text": "a ="})
    items += own.items(uri, 2, 7)
    here = place(uri, 2, 7)
    edits = own.request("textDocument/copilotInlineEdit", here)["edits"]
    older = own.request("getCompletions", {"doc": {"uri": uri, "position": here["position"]}})["completions"]
    assert (len(items), len(edits), len(older)) == (5, 1, 1)
    assert all(each["range"]["start"]["line"] == each["range"]["end"]["line"] == 2 for each in items + older)
    assert "null" not in json.dumps([items, edits, older])


def test_no_item_is_a_snippet(editor: Editor):
    assert texts(editor, editor.opened(script(text="${1:x} $0 \\}") + "x = "), 4) == ["${1:x} $0 \\}"]


def test_nothing_to_show_is_an_empty_list_and_not_null(editor: Editor):
    uri = editor.opened(script(text="") + "x = ")
    assert editor.result(editor.inline(uri, 1, 4)) == {"items": []}


def test_an_unsure_fill_is_shown_only_when_asked_for(editor: Editor):
    uri = editor.opened(script(confidence=0.2) + "x = ")
    assert texts(editor, uri, 4) == []
    assert texts(editor, uri, 4, kind=1) == ["suggested"]


def test_an_accepted_suggestion_is_noted(editor: Editor):
    [item] = editor.items(editor.opened("x = "), 0, 4)
    accepted = item["command"]["arguments"]
    for arguments in (accepted, [*accepted, 3]):
        command = {"command": item["command"]["command"], "arguments": arguments}
        assert editor.request("workspace/executeCommand", command) is None


def test_with_a_selected_popup_item_the_suggestion_extends_it_or_is_left_out(editor: Editor):
    uri = editor.opened(script(text="nt(x)") + "pri")

    def selecting(text: str) -> list[dict[str, Any]]:
        selected = {"range": span((1, 0), (1, 3)), "text": text}
        return editor.items(uri, 1, 3, context={"triggerKind": 2, "selectedCompletionInfo": selected})

    [item] = selecting("print")
    assert (item["insertText"], item["range"]) == ("print(x)", span((1, 0), (1, 3)))
    assert selecting("private") == []


# Which text it is about


def test_an_answer_is_for_the_version_asked_about(editor: Editor):
    uri = editor.opened("y = ")
    editor.change(uri, 2, {"range": span((0, 0), (0, 4)), "text": script(text="new") + "value = "})
    [item] = editor.items(uri, 1, 8)
    assert (item["insertText"], item["range"]["start"]) == ("new", {"line": 1, "character": 8})


def test_what_is_typed_meanwhile_does_not_move_the_answer(editor: Editor):
    uri = editor.opened(script(ms=300, text="value") + "x = ")
    asked = editor.inline(uri, 1, 4)
    editor.change(uri, 2, {"range": span((1, 4), (1, 4)), "text": "va"})
    [item] = editor.result(asked)["items"]
    assert (item["insertText"], item["range"]) == ("value", span((1, 4), (1, 4)))


def test_astral_characters_count_as_two(editor: Editor):
    uri = editor.opened('s = "😀"; y = ')
    editor.change(uri, 2, {"range": span((0, 8), (0, 8)), "text": " z"})
    [item] = editor.items(uri, 0, 99)
    assert item["range"]["start"] == {"line": 0, "character": 16}


def test_an_unopened_document_is_an_error_that_says_so(editor: Editor):
    with pytest.raises(Refused, match="not open") as refused:
        editor.items("file:///nowhere.py", 0, 0)
    assert refused.value.code == INVALID_PARAMS


def test_a_closed_document_is_not_open(editor: Editor):
    uri = editor.opened("x = ")
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert code_of(editor, editor.inline(uri, 0, 4)) == INVALID_PARAMS


# Newest wins


def test_a_newer_request_cancels_the_older_one(editor: Editor):
    uri = editor.opened(script(ms=60_000) + "x = ")
    older = editor.inline(uri, 1, 4)
    editor.change(uri, 2, {"range": span((0, 0), (1, 0)), "text": script(text="newer")})
    newer = editor.inline(uri, 1, 4)
    assert code_of(editor, older) == CANCELLED
    assert [item["insertText"] for item in editor.result(newer)["items"]] == ["newer"]


def test_an_automatic_request_does_not_cancel_an_invoked_one(editor: Editor):
    uri = editor.opened(script(ms=300, text="a = 1\n    b = 2") + "def f():\n    ")
    by_key, by_itself = editor.inline(uri, 2, 4, kind=1), editor.inline(uri, 2, 4)
    found = [[item["insertText"] for item in editor.result(asked)["items"]] for asked in (by_key, by_itself)]
    assert found == [["a = 1\n    b = 2", "a = 1"], ["a = 1\n    b = 2"]]


def test_the_client_can_cancel(editor: Editor):
    uri = editor.opened(script(ms=60_000) + "x = ")
    asked = editor.inline(uri, 1, 4)
    editor.notify("$/cancelRequest", {"id": asked})
    assert editor.reply(asked)["error"] == {"code": CANCELLED, "message": "the request was cancelled"}
    editor.change(uri, 2, {"range": span((0, 0), (1, 0)), "text": script(text="after")})
    assert texts(editor, uri, 4) == ["after"]


@pytest.mark.parametrize("is_whole", [False, True], ids=["edits are sent", "whole texts are sent"])
def test_typing_through_a_suggestion_keeps_its_rest(editor: Editor, is_whole: bool):
    text = script(text="value(1)") + "x = "
    uri = editor.opened(text)
    [first] = editor.items(uri, 1, 4)
    editor.change(uri, 2, {"text": text + "va"} if is_whole else {"range": span((1, 4), (1, 4)), "text": "va"})
    [rest] = editor.items(uri, 1, 6)
    assert (rest["insertText"], rest["range"]["start"]) == ("lue(1)", {"line": 1, "character": 6})
    assert rest["command"]["arguments"] == first["command"]["arguments"]


# Life cycle


@pytest.mark.parametrize("params", [{"context": {"triggerKind": 2}}, {}], ids=["well formed", "malformed"])
def test_before_initialize_requests_are_refused(own: Editor, params: dict[str, Any]):
    with pytest.raises(Refused) as refused:
        own.request(INLINE, place("file:///a.py", 0, 0) | params)
    assert refused.value.code == -32002
    own.notify("textDocument/didClose", {"textDocument": {"uri": "file:///a.py"}})
    own.initialize()


def test_exit_does_not_wait_for_a_model_that_is_being_loaded(own: Editor):
    own.initialize(options={"model": "stuck"})


def test_a_request_is_about_the_document_as_it_was_when_it_was_sent(editor: Editor):
    uri = editor.opened(script(text="old") + "x = ")
    asked = {"id": "r", "method": INLINE, "params": place(uri, 1, 4) | {"context": {"triggerKind": 2}}}
    contents = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": script(text="new")}]}
    change = {"method": "textDocument/didChange", "params": contents}
    editor.write(b"".join(frame({"jsonrpc": "2.0"} | message) for message in (asked, change)))
    [item] = editor.result("r")["items"]
    assert (item["insertText"], item["range"]["start"]) == ("old", {"line": 1, "character": 4})


def test_the_server_ends_when_the_pipe_is_closed():
    editor = Editor().initialize(options={"model": "stuck"})
    editor.process.stdin.close()
    assert editor.process.wait(PATIENCE) == 1


def test_after_shutdown_requests_are_refused_and_exit_is_clean():
    editor = Editor().initialize()
    assert editor.request("shutdown", None) is None
    assert code_of(editor, editor.inline("file:///a.py", 0, 0)) == -32600
    editor.leave({"method": "exit"})


# The model


def test_a_failing_fill_is_reported_once_and_answered_empty(editor: Editor):
    uri = editor.opened(script(error="out of memory") + "x = ")
    assert texts(editor, uri, 4) == texts(editor, uri, 4) == []
    [message] = editor.received("window/showMessage")
    assert message["message"] == "Mercury: RuntimeError: out of memory; run mercury-lsp doctor"


def reports(editor: Editor) -> list[dict[str, Any]]:
    return [progress["value"] for progress in editor.received("$/progress")]


WINDOW = {"window": {"workDoneProgress": True}}


def test_a_request_that_comes_while_the_model_loads_waits_for_it(own: Editor):
    own.initialize(WINDOW, {"model": "slow"})
    uri = own.opened("x = ")
    older, newer = own.inline(uri, 0, 3), own.inline(uri, 0, 4)
    assert code_of(own, older) == CANCELLED
    assert [item["insertText"] for item in own.result(newer)["items"]] == ["suggested"]
    own.until(lambda: len(reports(own)) == 2)
    begin, end = reports(own)
    assert (begin["title"], end["message"]) == ("Loading slow", "ready")


@pytest.mark.parametrize(("model", "expected"), [("missing", "set mercury.model"), ("broken", "mercury-lsp doctor")])
def test_a_model_that_cannot_be_loaded_is_reported_once_and_answered_empty(own: Editor, model: str, expected: str):
    own.initialize(WINDOW, {"mercury": {"model": model}})
    uri = own.opened("x = ")
    assert texts(own, uri, 4, line=0) == texts(own, uri, 4, line=0) == []
    own.until(lambda: len(reports(own)) == 2)
    [message] = own.received("window/showMessage")
    assert message["type"] == 1 and expected in message["message"]


def test_without_progress_support_none_is_shown(editor: Editor):
    editor.items(editor.opened("x = "), 0, 4)
    assert reports(editor) == []


def test_another_model_is_loaded_when_the_settings_name_one(own: Editor):
    own.initialize()
    uri = own.opened("x = ")
    assert texts(own, uri, 4, line=0) == ["suggested"]
    configure(own, {"model": "missing"})
    own.wait_for("window/showMessage")
    own.change(uri, 2, {"range": span((0, 0), (0, 0)), "text": "xy"})
    assert texts(own, uri, 6, line=0) == []


# Configuration


def configure(editor: Editor, section: Any) -> None:
    editor.notify("workspace/didChangeConfiguration", {"settings": {"mercury": section}})


def test_pushed_settings_take_effect(own: Editor):
    own.initialize()
    uri = own.opened(script(confidence=0.6) + "x = ")
    for section in ({"disabledLanguages": ["python"]}, {"eagerness": "low"}):
        configure(own, section)
        assert texts(own, uri, 4) == []
    configure(own, {})
    assert texts(own, uri, 4) == ["suggested"]


def test_settings_are_requested_from_clients_that_support_it():
    with Editor({"workspace/configuration": lambda _: [{"enabled": False}]}) as editor:
        editor.initialize({"workspace": {"configuration": True}})
        uri = editor.opened("x = ")
        for _ in range(100):  # before the settings arrive it answers with the defaults
            if not editor.items(uri, 0, 4):
                return
    raise AssertionError("the settings did not take effect")


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ({"gaet": 1}, ("mercury.gaet", "deadlineMs")),
        ({"effort": "huge"}, ("mercury.effort", "instant, low, medium, high")),
        ("loud", ("object",)),
    ],
)
def test_wrong_settings_are_reported_and_change_nothing(own: Editor, section: Any, named: tuple[str, ...]):
    own.initialize()
    uri = own.opened("x = ")
    configure(own, {"enabled": False})
    configure(own, section)
    message = own.wait_for("window/showMessage")
    assert message["type"] == 2 and all(word in message["message"] for word in named)
    assert len(own.received("window/showMessage")) == 1 and texts(own, uri, 4, line=0) == []
