"""The model that `mercury-lsp models use` chose: editors load it where their settings name none."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import Editor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems keep user data elsewhere")

PROGRESS = {"window": {"workDoneProgress": True}}


def editor_of(user: Path, options: Any) -> Editor:
    editor = Editor(
        {"window/workDoneProgress/create": lambda params: None}, env=os.environ | {"XDG_DATA_HOME": str(user)}
    )
    return editor.initialize(PROGRESS, options)


def loaded(editor: Editor, count: int = 1) -> list[str]:
    """What the server shows while it loads its first models, once it has loaded that many."""

    def values(kind: str) -> list[dict[str, str]]:
        found = [params["value"] for method, params in editor.notices if method == "$/progress"]
        return [value for value in found if value["kind"] == kind]

    editor.until(lambda: len(values("end")) == count)
    return [value["title"] for value in values("begin")]


def choose(user: Path, name: str) -> None:
    (user / "mercury-lsp").mkdir(exist_ok=True)
    (user / "mercury-lsp" / "default-model").write_text(f"{name}\n")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "Loading chosen"),
        ({"effort": "high"}, "Loading chosen"),
        ({"model": "other"}, "Loading other"),
        ({"model": None}, "Loading the bundled model"),
        ({"model": "bundled"}, "Loading the bundled model"),
    ],
)
def test_the_users_choice_is_loaded_unless_the_settings_name_a_model(tmp_path: Path, options: Any, expected: str):
    choose(tmp_path, "chosen")
    with editor_of(tmp_path, options) as editor:
        assert loaded(editor) == [expected]


@pytest.mark.parametrize("name", ["", "bundled"])
def test_without_a_choice_the_bundled_model_is_loaded(tmp_path: Path, name: str):
    choose(tmp_path, name)
    with editor_of(tmp_path, {}) as editor:
        assert loaded(editor) == ["Loading the bundled model"]


def test_a_new_choice_takes_effect_when_the_editor_sends_its_settings_again(tmp_path: Path):
    with editor_of(tmp_path, {}) as editor:
        assert loaded(editor) == ["Loading the bundled model"]
        choose(tmp_path, "chosen")
        editor.notify("workspace/didChangeConfiguration", {"settings": {"mercury": {}}})
        assert loaded(editor, 2) == ["Loading the bundled model", "Loading chosen"]
