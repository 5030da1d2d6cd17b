"""Texts by key with the bundled model, through the server."""

import json
import sys
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.support.editor import Editor

pytestmark = pytest.mark.slow

SERVE = """
from mercury_engine.engine import Engine
from mercury_lsp.commands.stdio import serve
serve(lambda settings: Engine.load(None))
"""

EXTENSIONS = {"json": ".json", "python": ".py"}

INVOKED = 1


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    with Editor({"workspace/configuration": lambda _: [None]}, [sys.executable, "-c", SERVE]) as editor:
        yield editor.initialize(options={"waitForContext": True, "deadlineMs": 60_000})


def texts(editor: Editor, marked: str, language: str) -> tuple[str, list[str], str]:
    """What is suggested by key at the bar, and the text on both sides of it."""
    before, after = marked.split("|")
    uri, line = f"file:///{uuid4().hex}{EXTENSIONS[language]}", before.rpartition("\n")[2]
    editor.open(uri, before + after, language)
    items = editor.items(uri, before.count("\n"), len(line), INVOKED)
    return before, [item["insertText"] for item in items], after


@pytest.mark.parametrize(
    "marked",
    [
        '{\n  "port": |\n}\n',
        '{\n  "host": "localhost",\n  "port": |\n}\n',
        '{\n  "name": "shop",\n  "scripts": {\n    "build": "tsc",\n    "test": |\n  }\n}\n',
        '{\n  "files": [\n    "a.txt",\n    |\n  ]\n}\n',
        '{\n  "a": 1,\n  "b": |\n}',
        '{"host": "localhost", "port": |}',
        '[\n  {"id": 1},\n  |\n]\n',
        '{\n  "version": "1.0.0",\n  "license": |\n}\n',
        '{\n  "name": "x",\n  "private": tr|\n}\n',
        '{\n  "a": [1, 2, |]\n}\n',
    ],
)
def test_json_stays_json_with_whatever_is_suggested(editor: Editor, marked: str):
    before, found, after = texts(editor, marked, "json")
    assert found
    for text in found:
        json.loads(before + text + after)


def test_a_list_does_not_grow_by_the_same_member_at_each_acceptance(editor: Editor):
    before = '__all__ = [\n    "Circle",\n    "Square",\n'
    for _ in range(5):
        _, found, _ = texts(editor, before + "    |\n]\n", "python")
        if not found:
            break
        before += "    " + found[0].rstrip(",") + ",\n"
    members = [line.strip() for line in before.splitlines()[1:]]
    assert len(members) > 2 and len({*members}) == len(members)


@pytest.mark.parametrize(
    ("typed", "right"),
    [
        ("print(quarterly_to", "quarterly_totals"),
        ("summarise_q", "summarise_quarters("),
        ("summarise_quarters(quarterly_totals, min", "minimum_rows"),
    ],
)
def test_cells_of_a_notebook_know_each_other(editor: Editor, typed: str, right: str):
    cells = [
        "quarterly_totals = load_frame('sales.csv')",
        "def summarise_quarters(frame, minimum_rows=10):\n    return frame.groupby('quarter').sum()",
        typed,
    ]
    name = uuid4().hex
    uris = [f"vscode-notebook-cell:/{name}.ipynb#W{number}sZmlsZQ==" for number in range(3)]
    for uri, text in zip(uris, cells, strict=True):
        editor.open(uri, text, "python")
    [text, *_] = [item["insertText"] for item in editor.items(uris[2], 0, len(typed), INVOKED)]
    assert right in typed + text
