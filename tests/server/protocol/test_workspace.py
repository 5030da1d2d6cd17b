"""Settings, folders, status and log."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.editor import Editor, script


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    with Editor() as made:
        made.initialize()
        made.until(lambda: loaded(made))
        yield made


def loaded(editor: Editor) -> list[str]:
    """The log's lines about loaded models."""
    return [
        message["message"]
        for message in editor.received("window/logMessage")
        if message["message"].startswith("loaded")
    ]


# Settings


def test_the_server_registers_with_clients_that_can_be_asked_for_settings():
    asked: list[Any] = []

    def configuration(params: Any) -> list[Any]:
        asked.append(params["items"])
        return [{"enabled": len(asked) < 2}]

    with Editor({"workspace/configuration": configuration}) as editor:
        editor.initialize(
            {"workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}}
        )
        [registration] = editor.wait_for("client/registerCapability")["registrations"]
        assert registration["method"] == "workspace/didChangeConfiguration"
        assert registration["registerOptions"] == {"section": "mercury"}
        editor.wait_for("workspace/configuration")
        uri = editor.opened("x = ")
        editor.until(lambda: loaded(editor))
        assert len(editor.items(uri, 0, 4)) == 1
        editor.notify("workspace/didChangeConfiguration", {"settings": None})
        editor.wait_for("workspace/configuration", 2)
        editor.receive_all()
        assert editor.items(uri, 0, 4) == []
    assert asked[0] == [{"section": "mercury"}]


def test_a_client_that_cannot_register_is_not_asked_to(editor: Editor):
    assert editor.received("client/registerCapability") == []


@pytest.mark.parametrize("answer", [[None], [], None, "loud", {}, [{"trace": {"server": "verbose"}}]], ids=repr)
def test_any_answer_about_settings_leaves_the_server_working(answer: Any):
    with Editor({"workspace/configuration": lambda _: answer}) as editor:
        editor.initialize({"workspace": {"configuration": True}})
        editor.wait_for("workspace/configuration")
        assert len(editor.items(editor.opened("x = "), 0, 4)) == 1
        if not isinstance(answer, str):
            assert editor.received("window/showMessage") == []


# Folders


def test_folders_are_announced_and_may_change(editor: Editor):
    announced = editor.capabilities["workspace"]["workspaceFolders"]
    assert announced == {"supported": True, "changeNotifications": True}


def test_the_model_sees_paths_relative_to_the_folders():
    first, second = ({"uri": f"file:///work/{name}", "name": name} for name in ("one", "two"))
    with Editor() as editor:
        editor.initialize(workspaceFolders=[first])
        event = {"added": [second], "removed": [first, {"uri": "file:///never", "name": "never"}]}
        editor.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        editor.open("file:///work/one/pkg/a.py", script(echo=True) + "x = ")
        editor.open("file:///work/two/pkg/b.py", script(echo=True) + "x = ")
        [outside] = editor.items("file:///work/one/pkg/a.py", 1, 4)
        [inside] = editor.items("file:///work/two/pkg/b.py", 1, 4)
        assert outside["insertText"].startswith("# path: a.py")
        assert inside["insertText"].startswith("# path: pkg/b.py")


# Status


def test_the_status_names_model_version_and_document(editor: Editor):
    uri = editor.opened("x = ", language="python")
    status = editor.request("mercury/status", {"textDocument": {"uri": uri}})
    assert (status["kind"], status["busy"], status["message"]) == ("Normal", False, "")
    assert status["engine"] == {"name": "fake", "device": "cpu", "backend": "torch"}
    assert status["suggests"] is True and status["languageId"] == "python" and status["version"]


def test_the_status_is_also_a_command(editor: Editor):
    assert "mercury.status" in editor.capabilities["executeCommandProvider"]["commands"]
    status = editor.request("workspace/executeCommand", {"command": "mercury.status"})
    assert status == editor.request("mercury/status", {})


def test_the_status_says_what_keeps_the_server_silent():
    with Editor() as editor:
        editor.initialize(options={"model": "stuck", "disabledLanguages": ["markdown"]})
        assert editor.request("mercury/status", {})["busy"] is True
        uri = editor.opened("", language="markdown")
        assert editor.request("mercury/status", {"textDocument": {"uri": uri}})["suggests"] is False
    with Editor() as editor:
        editor.initialize(options={"model": "missing"})
        editor.wait_for("window/showMessage")
        status = editor.request("mercury/status", {})
        assert status["kind"] == "Error" and "set mercury.model" in status["message"] and "engine" not in status


DECLARES_STATUS = {"experimental": {"mercury": {"status": True}}}


@pytest.mark.parametrize(
    ("capabilities", "name"), [({}, "Neovim"), (DECLARES_STATUS, "another")], ids=["Neovim", "declared"]
)
def test_neovim_and_clients_that_declare_it_are_sent_status_changes(capabilities: dict[str, Any], name: str):
    with Editor() as editor:
        editor.initialize(capabilities, clientInfo={"name": name})
        editor.until(lambda: loaded(editor))
        editor.notify("workspace/didChangeConfiguration", {"settings": {"mercury": {"enabled": False}}})
        editor.until(lambda: [each["kind"] for each in editor.received("didChangeStatus")][-1] == "Inactive")
        statuses = editor.received("didChangeStatus")
        assert [(each["kind"], each["busy"]) for each in statuses] == [
            ("Normal", True),
            ("Normal", False),
            ("Inactive", False),
        ]
        assert all(isinstance(each["message"], str) for each in statuses)


# Log


def test_a_client_may_ask_for_a_trace_and_gets_none(editor: Editor):
    editor.notify("$/setTrace", {"value": "verbose"})
    assert len(editor.items(editor.opened("x = "), 0, 4)) == 1
    assert editor.received("$/logTrace") == []


def test_warnings_reach_the_clients_log(editor: Editor):
    editor.change("file:///never-opened.py", 2, {"text": "x"})
    editor.until(
        lambda: any(
            "never-opened.py is not open" in message["message"] for message in editor.received("window/logMessage")
        )
    )
