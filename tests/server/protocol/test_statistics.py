"""What the real server counts, and what it does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mercury_lsp.statistics import OutcomeRecord, store
from tests.support.editor import Editor, place, script, span

URI = "file:///work/sample.py"
INFO = {"editorInfo": {"name": "Neovim", "version": "0.11.4"}, "editorPluginInfo": {"name": "x", "version": "1"}}
LINE = script(text="value(1)") + "x = "


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def counted(state: Path, use: Callable[[Editor], None], options: Any = None, text: str = LINE) -> list[OutcomeRecord]:
    """The rows after an editor was used and closed; its settings are known before it is used."""
    with Editor() as editor:
        editor.initialize(options=options, clientInfo={"name": "test editor"})
        editor.receive_all()
        editor.open(URI, text)
        use(editor)
    return store.read(store.default_path(), 0)


def insert(editor: Editor, version: int, column: int, *texts: str, line: int = 1) -> None:
    """Insert pieces one after another, in one notification."""
    changes = []
    for text in texts:
        changes.append({"range": span((line, column), (line, column)), "text": text})
        column += len(text)
    editor.change(URI, version, *changes)


def run(editor: Editor, item: dict[str, Any], *more: Any) -> None:
    command = item["command"]
    arguments = [*command["arguments"], *more]
    editor.request("workspace/executeCommand", {"command": command["command"], "arguments": arguments})


def outcome(row: OutcomeRecord) -> tuple[str, int]:
    return row.outcome, row.saved


def test_acceptance_is_seen_in_the_edit_alone(state: Path):
    def use(editor: Editor) -> None:
        [item] = editor.items(URI, 1, 4)
        insert(editor, 2, 4, item["insertText"])

    [row] = counted(state, use)
    assert outcome(row) == ("accepted", 8)
    assert (row.language, row.client, row.model, row.automatic) == ("python", "test editor", "fake", True)
    assert row.confidence == 0.9 and row.latency_ms > 0 and row.length == 8


@pytest.mark.parametrize("is_shown", [False, True])
@pytest.mark.parametrize("takes", [False, True])
def test_a_text_that_is_only_marked_counts_once_it_is_shown_or_taken(state: Path, is_shown: bool, takes: bool):
    with Editor() as editor:
        subtle = {"experimental": {"mercury": {"subtle": True}}}
        editor.initialize(subtle, {"display": "subtle"})
        editor.receive_all()
        editor.open(URI, LINE)
        [item] = editor.items(URI, 1, 4)
        if is_shown:
            editor.notify("textDocument/didShowCompletion", {"item": item})
        insert(editor, 2, 4, item["insertText"] if takes else "y")
    found = [outcome(row) for row in store.read(store.default_path(), 0)]
    assert found == ([("accepted", 8)] if takes else [("rejected", 0)] if is_shown else [])


def test_next_edits_are_not_counted(state: Path):
    def use(editor: Editor) -> None:
        editor.change(URI, 2, {"range": span((1, 0), (1, 5)), "text": "total"})
        asked = place(URI, 1, 5) | {"textDocument": {"uri": URI, "version": 2}}
        [edit] = editor.request("textDocument/copilotInlineEdit", asked)["edits"]
        assert edit["range"] == span((2, 6), (2, 11))
        editor.notify("textDocument/didShowInlineEdit", {"item": edit})
        editor.change(URI, 3, {"range": edit["range"], "text": edit["text"]})
        run(editor, edit)

    assert counted(state, use, text=script(confidence=0.1) + "count = 1\nprint(count)\n") == []


def test_an_acceptance_reported_by_its_command_counts_once(state: Path):
    def use(editor: Editor) -> None:
        [item] = editor.items(URI, 1, 4)
        insert(editor, 2, 4, item["insertText"])
        run(editor, item)

    assert [outcome(row) for row in counted(state, use)] == [("accepted", 8)]


def test_pieces_typing_and_the_rest_are_one_suggestion(state: Path):
    def use(editor: Editor) -> None:
        [item] = editor.items(URI, 1, 4)
        insert(editor, 2, 4, "v", "a")
        [rest] = editor.items(URI, 1, 6)
        insert(editor, 3, 6, "lue")
        run(editor, rest, 5)
        [rest] = editor.items(URI, 1, 9)
        assert rest["command"] == item["command"]

    assert [outcome(row) for row in counted(state, use)] == [("partly", 3)]


def test_typing_the_same_is_no_acceptance_and_something_else_a_rejection(state: Path):
    def use(editor: Editor) -> None:
        editor.items(URI, 1, 4)
        for number, key in enumerate("value(1)"):
            insert(editor, 2 + number, 4 + number, key)
        editor.change(URI, 20, {"range": span((1, 4), (1, 12)), "text": "y"})
        editor.items(URI, 1, 5)
        insert(editor, 21, 5, "z")

    assert sorted(row.outcome for row in counted(state, use)) == ["rejected", "typed"]


def test_a_suggestion_that_is_replaced_or_left_when_the_document_closes_counts_as_ignored(state: Path):
    def use(editor: Editor) -> None:
        editor.items(URI, 1, 4)
        editor.change(URI, 2, {"range": span((0, 0), (1, 0)), "text": script(text="other")})
        [item] = editor.items(URI, 1, 4)
        assert item["insertText"] == "other"
        editor.notify("textDocument/didClose", {"textDocument": {"uri": URI}})

    assert [outcome(row) for row in counted(state, use)] == [("ignored", 0)] * 2


def test_a_popup_item_that_replaces_the_word_is_accepted(state: Path):
    with Editor() as editor:
        editor.initialize({"textDocument": {"completion": {}}})
        editor.receive_all()
        editor.open(URI, script(text="nt(x)") + "pri")
        [item] = editor.request("textDocument/completion", place(URI, 1, 3))["items"]
        editor.change(URI, 2, {"range": item["textEdit"]["range"], "text": item["textEdit"]["newText"]})
        run(editor, item)
    assert [outcome(row) for row in store.read(store.default_path(), 0)] == [("accepted", 5)]


# The dialect


def test_older_notices_count_too(state: Path):
    def use(editor: Editor) -> None:
        asked = {"doc": {"uri": URI, "position": {"line": 1, "character": 4}}}
        [found] = editor.request("getCompletions", asked)["completions"]
        editor.request("notifyShown", {"uuid": found["uuid"]})
        insert(editor, 2, 4, found["displayText"])
        editor.request("notifyAccepted", {"uuid": found["uuid"], "acceptedLength": 12})
        editor.request("notifyRejected", {"uuids": [found["uuid"]]})

    assert [outcome(row) for row in counted(state, use, INFO)] == [("accepted", 8)]


def test_suggestions_that_a_reporting_client_does_not_report_were_not_shown(state: Path):
    def use(editor: Editor) -> None:
        [item] = editor.items(URI, 1, 4)
        editor.notify("textDocument/didShowCompletion", {"item": {"command": item["command"]}})
        insert(editor, 2, 4, "z")
        editor.items(URI, 1, 5)
        insert(editor, 3, 5, "z")

    assert [row.outcome for row in counted(state, use, INFO)] == ["rejected"]


# Off


@pytest.mark.parametrize("options", [{"statistics": False}, INFO | {"mercury": {"statistics": False}}], ids=["", "x"])
def test_with_the_setting_off_nothing_is_written(state: Path, options: dict[str, Any]):
    def use(editor: Editor) -> None:
        [item] = editor.items(URI, 1, 4)
        insert(editor, 2, 4, "value(1)")
        run(editor, item)

    assert counted(state, use, options) == []
    assert list(state.iterdir()) == []


def test_with_wrong_settings_nothing_is_counted_because_they_may_forbid_it(state: Path):
    def use(editor: Editor) -> None:
        editor.items(URI, 1, 4)
        insert(editor, 2, 4, "value(1)")

    assert counted(state, use, {"statistics": False, "gaet": 1}) == []


def test_neither_text_nor_file_name_is_stored(state: Path):
    def use(editor: Editor) -> None:
        editor.items(URI, 1, 4)
        insert(editor, 2, 4, "value(1)")

    assert len(counted(state, use)) == 1
    stored = b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())
    assert b"python" in stored
    assert b"value" not in stored and b"sample" not in stored and b"/work" not in stored


def test_an_unusable_folder_is_logged_and_does_no_harm(state: Path):
    (state / "mercury-lsp").write_text("a file")
    with Editor() as editor:
        editor.initialize()
        editor.receive_all()
        editor.open(URI, LINE)
        editor.items(URI, 1, 4)
        insert(editor, 2, 4, "value(1)")
        editor.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        message = editor.wait_for("window/logMessage", 2)  # the first is about the model
        assert "statistics cannot be written" in message["message"]
        editor.open(URI, LINE)
        assert len(editor.items(URI, 1, 4)) == 1
