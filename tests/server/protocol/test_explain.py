"""Why nothing is shown: every silence of the real server has its reason, by command and in the status."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.editor import COMMAND, Editor, script

LONG_LINE = "x = '" + "a" * 129_000 + "'\n"

SILENT = {"confidence": 0.1}


@pytest.fixture(scope="module")
def shared() -> Iterator[Editor]:
    with Editor({"workspace/configuration": lambda _: [None]}, [*COMMAND, "--rewrites"]) as made:
        yield made.initialize(options={"disabledLanguages": ["cobol"]})


@pytest.fixture
def editor(shared: Editor) -> Editor:
    return shared.quiet()


def explained(editor: Editor, uri: str | None = None) -> list[str]:
    arguments = [] if uri is None else [{"textDocument": {"uri": uri}}]
    return editor.request("workspace/executeCommand", {"command": "mercury.explain", "arguments": arguments})


def status(editor: Editor, uri: str) -> dict[str, Any]:
    return editor.request("mercury/status", {"textDocument": {"uri": uri}})


@pytest.mark.parametrize(
    ("uri", "language", "text", "why"),
    [
        ("file:///work/.env", "shellscript", "A=\n", "by its name the file holds secrets"),
        ("file:///work/old.cob", "cobol", "x = \n", "cobol is among mercury.disabledLanguages"),
        ("file:///work/long.py", "python", LONG_LINE, "the file has a line of more than 50,000 characters"),
    ],
)
def test_a_document_without_suggestions_says_why(editor: Editor, uri: str, language: str, text: str, why: str):
    editor.open(uri, text, language)
    for kind in (1, 2):
        assert editor.items(uri, 0, 2, kind=kind) == []
        assert explained(editor) == [why]
    found = status(editor, uri)
    assert (found["suggests"], found["why"], found["languageId"]) == (False, why, language)
    assert editor.received("window/showMessage")[-1]["message"] == f"Mercury: {why}"


def test_a_client_that_shows_the_reasons_itself_gets_no_message(editor: Editor):
    editor.open("file:///work/.env", "A=\n", "shellscript")
    arguments = [{"textDocument": {"uri": "file:///work/.env"}, "quiet": True}, "added by the editor"]
    found = editor.request("workspace/executeCommand", {"command": "mercury.explain", "arguments": arguments})
    assert found == ["by its name the file holds secrets"]
    assert editor.received("window/showMessage") == []


def test_what_is_switched_off_or_cannot_be_loaded_says_so():
    for options, why in (
        ({"enabled": False}, "switched off by mercury.enabled"),
        ({"model": "missing"}, "missing"),
    ):
        with Editor() as editor:
            editor.initialize(options=options)
            editor.until(lambda: editor.request("mercury/status", {})["kind"] != "Normal")
            uri = editor.opened("x = ")
            found = status(editor, uri)
            assert found["suggests"] is False and why in found["why"] and explained(editor) == [found["why"]]


@pytest.mark.parametrize(
    ("line", "place"), [("# so", "comments"), ('x = "so', "strings"), ("x = so", None), ('x = "so" + y', None)]
)
@pytest.mark.parametrize("disabled", [[], ["comments"], ["comments", "strings"]])
def test_nothing_is_shown_unasked_in_comments_and_strings_that_are_switched_off(
    line: str, place: str | None, disabled: list[str]
):
    with Editor() as editor:
        editor.initialize(options={"disabledIn": disabled})
        uri = editor.opened(script(text=" it said") + line)
        is_off = place in disabled
        assert len(editor.items(uri, 1, len(line), kind=2)) == (0 if is_off else 1)
        if is_off:
            assert explained(editor, uri) == [f"text at the cursor: mercury.disabledIn names {place}"]
        assert editor.items(uri, 1, len(line), kind=1)


@pytest.mark.parametrize(
    ("text", "at", "kind", "why"),
    [
        (script(text="") + "x = ", 4, 1, "the model has nothing to add"),
        (script(text="") + "x = ", 4, 2, "the model has nothing to add"),
        (script(**SILENT) + "x = ", 4, 2, "the model is only 10% sure"),
        (script(error="no memory") + "x = ", 4, 2, "the model failed; run mercury-lsp doctor"),
        (script() + 'password = "hunter2Zx9"', 23, 2, "the line looks like a secret"),
        (script() + 'password = "hunter2Zx9"', 23, 1, "the line looks like a secret"),
    ],
)
def test_an_empty_answer_says_why(editor: Editor, text: str, at: int, kind: int, why: str):
    uri = editor.opened(text)
    assert editor.items(uri, 1, at, kind=kind) == []
    assert f"text at the cursor: {why}" in explained(editor)[0]
    assert status(editor, uri)["suggests"] is True
