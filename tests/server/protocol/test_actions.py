"""Code actions, the commands behind them, and progress that the user can cancel."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.editor import Editor, Refused, place, script, span

ACTIONS = {
    "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["refactor"]}}}},
    "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
}
ANSWERS = {
    "workspace/applyEdit": lambda _: {"applied": True},
    "window/showDocument": lambda _: {"success": True},
}


@pytest.fixture(scope="module")
def shared() -> Iterator[Editor]:
    with Editor(ANSWERS) as made:
        yield made.initialize(ACTIONS)


@pytest.fixture
def editor(shared: Editor) -> Editor:
    return shared.quiet()


def actions(editor: Editor, uri: str, where: dict[str, Any], **context: Any) -> list[dict[str, Any]]:
    params = {"textDocument": {"uri": uri}, "range": where, "context": {"diagnostics": []} | context}
    return editor.request("textDocument/codeAction", params)


def fill(editor: Editor, uri: str, line: int, column: int, version: int = 1, **more: Any) -> int:
    """Choose "fill here"; returns the request's id."""
    argument = place(uri, line, column) | {"textDocument": {"uri": uri, "version": version}}
    return editor.ask("workspace/executeCommand", {"command": "mercury.fill", "arguments": [argument]} | more)


@pytest.mark.parametrize(
    ("capabilities", "action", "command"),
    [
        (ACTIONS, True, True),
        ({"textDocument": {"codeAction": {}}}, False, False),
        ({"workspace": {"applyEdit": True}}, False, True),
    ],
    ids=["both", "cannot apply edits", "has no code actions"],
)
def test_actions_are_offered_to_clients_that_can_apply_edits(capabilities: Any, action: bool, command: bool):
    with Editor() as editor:
        offered = editor.initialize(capabilities).capabilities
        assert ("codeActionProvider" in offered) is action
        assert ("mercury.fill" in offered["executeCommandProvider"]["commands"]) is command


def test_at_a_cursor_there_is_one_action_and_listing_it_asks_no_model(editor: Editor):
    uri = editor.opened(script(error="the model was asked") + "x = ")
    [action] = actions(editor, uri, span((1, 4), (1, 4)))
    assert action["title"] == "Mercury: fill here"
    assert action["kind"].startswith("refactor")
    assert action["command"]["command"] in editor.capabilities["executeCommandProvider"]["commands"]
    assert editor.received("window/showMessage") == []


def test_a_client_without_action_literals_gets_the_command_itself():
    with Editor() as editor:
        editor.initialize({"textDocument": {"codeAction": {}}, "workspace": {"applyEdit": True}})
        uri = editor.opened("x = ")
        [command] = actions(editor, uri, span((0, 4), (0, 4)))
        assert command["command"] == "mercury.fill"


def test_the_action_inserts_the_fill_into_the_version_it_was_listed_for(editor: Editor):
    uri = editor.opened(script(text="x = 1\n    y = 2") + "def f():\n    ")
    [action] = actions(editor, uri, span((2, 4), (2, 4)))
    command = {key: action["command"][key] for key in ("command", "arguments")}
    assert editor.request("workspace/executeCommand", command) == {"applied": True}
    [applied] = editor.received("workspace/applyEdit")
    assert applied["edit"]["documentChanges"] == [
        {
            "textDocument": {"uri": uri, "version": 1},
            "edits": [{"range": span((2, 4), (2, 4)), "newText": "x = 1\n    y = 2"}],
        }
    ]


def test_the_cursor_goes_behind_the_fill(editor: Editor):
    uri = editor.opened(script(text="f()\n  𝒳") + "def f():\n    ")
    editor.result(fill(editor, uri, 2, 4))
    [shown] = editor.received("window/showDocument")
    assert (shown["uri"], shown["takeFocus"]) == (uri, True)
    assert shown["selection"] == span((3, 4), (3, 4))


@pytest.mark.parametrize(
    "answer", [lambda _: {"success": False}, lambda _: None, lambda _: "no"], ids=["no", "nothing", "nonsense"]
)
def test_a_cursor_that_the_client_does_not_move_is_no_failure(answer: Any):
    with Editor(ANSWERS | {"window/showDocument": answer}) as editor:
        editor.initialize(ACTIONS)
        assert editor.result(fill(editor, editor.opened("x = "), 0, 4)) == {"applied": True}
        assert len(editor.received("window/showDocument")) == 1
        assert editor.received("window/showMessage") == []


def test_plugins_made_for_copilots_server_are_shown_no_document_because_one_opens_a_browser():
    with Editor(ANSWERS) as editor:
        editor.initialize(ACTIONS, {"editorInfo": {"name": "Neovim", "version": "0.12.0"}})
        assert editor.result(fill(editor, editor.opened("x = "), 0, 4)) == {"applied": True}
        assert editor.received("window/showDocument") == []


def test_the_user_is_told_when_there_is_nothing_to_fill_in(editor: Editor):
    uri = editor.opened(script(text="") + "x = ")
    assert editor.result(fill(editor, uri, 1, 4)) == {"applied": False}
    [message] = editor.received("window/showMessage")
    assert "nothing" in message["message"] and editor.received("workspace/applyEdit") == []


def test_a_document_that_changed_since_is_left_alone(editor: Editor):
    uri = editor.opened("x = ")
    editor.change(uri, 2, {"range": span((0, 0), (0, 0)), "text": "y"})
    assert editor.result(fill(editor, uri, 0, 4)) == {"applied": False}
    assert "changed" in editor.received("window/showMessage")[0]["message"]


def test_automatic_requests_do_not_stop_the_action(editor: Editor):
    uri = editor.opened(script(ms=300) + "x = ")
    chosen = fill(editor, uri, 1, 4)
    ghost = editor.inline(uri, 1, 4)
    lookup_text = editor.inline(uri, 1, 2)
    assert editor.result(chosen) == {"applied": True}
    assert len(editor.result(lookup_text)["items"]) == 1
    with pytest.raises(Refused):
        editor.result(ghost)


def test_without_versioned_edits_the_plain_form_is_used():
    with Editor(ANSWERS) as editor:
        editor.initialize({"workspace": {"applyEdit": True}})
        uri = editor.opened("x = ")
        editor.result(fill(editor, uri, 0, 4))
        [applied] = editor.received("workspace/applyEdit")
        assert applied["edit"]["changes"] == {uri: [{"range": span((0, 4), (0, 4)), "newText": "suggested"}]}
        assert editor.received("window/showDocument") == []


@pytest.mark.parametrize("answer", [{"applied": False, "failureReason": "read only"}, None, {}, "yes"], ids=repr)
def test_an_edit_that_the_client_refuses_is_reported_as_not_applied(answer: Any):
    with Editor({"workspace/applyEdit": lambda _: answer}) as editor:
        editor.initialize(ACTIONS)
        assert editor.result(fill(editor, editor.opened("x = "), 0, 4)) == {"applied": False}
        assert editor.received("window/showDocument") == []


@pytest.mark.parametrize("arguments", [None, [], [3], [{}], [{"textDocument": {"uri": "x"}}], [1, 2]], ids=repr)
def test_wrong_arguments_are_refused(editor: Editor, arguments: Any):
    with pytest.raises(Refused) as refused:
        editor.request("workspace/executeCommand", {"command": "mercury.fill", "arguments": arguments})
    assert refused.value.code == -32602


def test_an_unknown_command_is_refused_with_the_known_ones(editor: Editor):
    with pytest.raises(Refused, match=r"mercury\.accepted") as refused:
        editor.request("workspace/executeCommand", {"command": "mercury.nothing"})
    assert refused.value.code == -32602


def test_a_kind_of_action_that_is_no_text_is_refused(editor: Editor):
    with pytest.raises(Refused, match="3") as refused:
        actions(editor, editor.opened("x = "), span((0, 4), (0, 4)), only=["refactor", 3])
    assert refused.value.code == -32602


# Progress


def test_work_is_shown_under_the_token_that_the_client_gives(editor: Editor):
    uri = editor.opened("x = ")
    editor.result(fill(editor, uri, 0, 4, workDoneToken="mine"))
    begin, end = [progress["value"] for progress in editor.received("$/progress") if progress["token"] == "mine"]
    assert (begin["kind"], begin["cancellable"]) == ("begin", True)
    assert end["kind"] == "end"
    assert editor.received("window/workDoneProgress/create") == []


def test_work_is_shown_under_a_new_token_where_the_client_gives_none(editor: Editor):
    uri = editor.opened("x = ")
    editor.result(fill(editor, uri, 0, 4))
    [created] = editor.received("window/workDoneProgress/create")
    kinds = [
        progress["value"]["kind"] for progress in editor.received("$/progress") if progress["token"] == created["token"]
    ]
    assert kinds == ["begin", "end"]


@pytest.mark.parametrize("method", ["command", "inline completion"])
def test_the_user_can_cancel_work_that_is_shown(editor: Editor, method: str):
    uri = editor.opened(script(ms=60_000) + "x = ")
    if method == "command":
        asked = fill(editor, uri, 1, 4, workDoneToken=method)
    else:
        asked = editor.inline(uri, 1, 4, kind=1, workDoneToken=method)
    editor.wait_for("$/progress")
    editor.notify("window/workDoneProgress/cancel", {"token": method})
    with pytest.raises(Refused) as refused:
        editor.result(asked)
    assert refused.value.code == -32800
    editor.wait_for("$/progress", 2)
    assert editor.received("workspace/applyEdit") == []
