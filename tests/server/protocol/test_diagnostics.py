"""Errors that the client forwards from other servers say where the next edit is, to the real server."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.server.protocol.test_next_edits import (
    ACTIONS,
    ANSWERS,
    FAR,
    SILENT,
    run,
)
from tests.support.editor import COMMAND as SERVER
from tests.support.editor import Editor, script, span

FORWARDED = "mercury/didChangeDiagnostics"

ERROR, WARNING, HINT = 1, 2, 4

ALONE = "def f(count):\n    x = 1\n    y = 2\n    return 3\n"
"""The name that is changed stands nowhere else, so no edit is known."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Editor]:
    """By key the user is taken to the first line if there is nothing better."""
    with Editor(ANSWERS, [*SERVER, "--place", "0"]) as made:
        yield made.initialize(ACTIONS)


@pytest.fixture
def editor(shared: Editor) -> Editor:
    return shared.quiet()


def diagnostic(line: int, column: int = 4, severity: int = ERROR) -> dict[str, Any]:
    return {"range": span((line, column), (line, column + 2)), "severity": severity}


def forward(editor: Editor, uri: str, version: int, *found: dict[str, Any]) -> None:
    editor.notify(FORWARDED, {"textDocument": {"uri": uri, "version": version}, "diagnostics": list(found)})


def changed(editor: Editor, *found: dict[str, Any], before: Sequence[dict[str, Any]] = (), body: str = ALONE) -> str:
    """A document in which a name was changed, which brought about these diagnostics; returns its uri."""
    uri = editor.opened(script(**SILENT) + body + FAR)
    forward(editor, uri, 1, *before)
    editor.change(uri, 2, {"range": span((1, 6), (1, 11)), "text": "total"})
    forward(editor, uri, 2, *found)
    return uri


def gone_to(editor: Editor, uri: str, version: int = 2, there: str = "") -> int | None:
    """The line of the document, or of the one that is `there`, to which the user is taken by key, if at all."""
    before = len(editor.received("window/showDocument"))
    editor.result(run(editor, uri, version))
    if not (found := editor.received("window/showDocument")[before:]):
        return None
    [shown] = found
    assert shown["uri"] == (there or uri)
    return shown["selection"]["start"]["line"]


def test_the_server_says_that_it_takes_diagnostics(editor: Editor):
    assert editor.capabilities["experimental"]["mercury"]["diagnostics"] is True


def test_by_key_the_user_is_taken_to_an_error_that_appeared_after_the_change(editor: Editor):
    assert gone_to(editor, changed(editor, diagnostic(30))) == 30


def test_an_error_that_was_there_before_the_change_is_no_place(editor: Editor):
    assert gone_to(editor, changed(editor, diagnostic(30), before=[diagnostic(30)])) == 0


def test_diagnostics_of_an_older_version_are_dropped(editor: Editor):
    uri = changed(editor)
    forward(editor, uri, 1, diagnostic(30))
    assert gone_to(editor, uri) == 0
    forward(editor, uri, 2, diagnostic(30))
    assert gone_to(editor, uri) == 30


def test_after_an_edit_an_error_is_a_place_only_once_it_is_reported_again(editor: Editor):
    uri = changed(editor, diagnostic(30))
    editor.change(uri, 3, {"range": span((1, 11), (1, 11)), "text": "s"})
    assert gone_to(editor, uri, 3) == 0
    forward(editor, uri, 3, diagnostic(30))
    assert gone_to(editor, uri, 3) == 30


def test_an_error_in_another_open_document_is_a_place_unless_that_is_ignored(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    with Editor(ANSWERS, [*SERVER, "--place", "0"]) as editor:
        editor.initialize(ACTIONS, rootUri=tmp_path.as_uri())
        for name in ("other.py", "ignored.py"):
            editor.open((tmp_path / name).as_uri(), FAR)
            forward(editor, (tmp_path / name).as_uri(), 1)
        uri = changed(editor)
        forward(editor, (tmp_path / "ignored.py").as_uri(), 1, diagnostic(3))
        assert gone_to(editor, uri) == 0
        forward(editor, (tmp_path / "other.py").as_uri(), 1, diagnostic(3))
        assert gone_to(editor, uri, there=(tmp_path / "other.py").as_uri()) == 3


def test_diagnostics_of_a_file_of_secrets_are_left_alone(tmp_path: Path):
    with Editor(ANSWERS, [*SERVER, "--place", "0"]) as editor:
        editor.initialize(ACTIONS, rootUri=tmp_path.as_uri())
        secret = (tmp_path / ".env").as_uri()
        editor.open(secret, FAR)
        forward(editor, secret, 1)
        uri = changed(editor)
        forward(editor, secret, 1, diagnostic(3))
        assert gone_to(editor, uri) == 0


# Edits


@pytest.mark.parametrize("is_saved", [True, False], ids=["saved", "reloaded"])
def test_an_edit_that_is_saved_at_once_is_the_users_although_its_file_changes(editor: Editor, is_saved: bool):
    uri = changed(editor, diagnostic(30))
    if is_saved:
        editor.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})
    assert gone_to(editor, uri) == (30 if is_saved else None)


# Off switches, and what no client should send


def test_diagnostics_are_of_no_use_where_next_edits_are_switched_off(editor: Editor):
    uri = changed(editor, diagnostic(30))
    for off in ({"nextEdits": False}, {"disabledLanguages": ["python"]}, {"enabled": False}):
        editor.notify("workspace/didChangeConfiguration", {"settings": {"mercury": off}})
        forward(editor, uri, 2, diagnostic(35))
        assert gone_to(editor, uri) is None
        editor.notify("workspace/didChangeConfiguration", {"settings": {"mercury": {}}})
        assert gone_to(editor, uri) == 30


def test_diagnostics_of_a_document_that_is_not_open_are_dropped(editor: Editor):
    forward(editor, "file:///nowhere.py", 1, diagnostic(3))
    uri = changed(editor, diagnostic(30))
    assert gone_to(editor, uri) == 30


def test_messages_are_never_logged(editor: Editor):
    uri = changed(editor, diagnostic(30) | {"message": "hunter2"})
    forward(editor, uri, 2, {"message": "hunter2"}, {"range": None, "severity": "error", "message": "hunter2"})
    assert gone_to(editor, uri) == 30
    editor.receive_all()
    logged = [each["message"] for each in editor.received("window/logMessage")]
    assert any("severity" in each for each in logged) and not any("hunter2" in each for each in logged)
