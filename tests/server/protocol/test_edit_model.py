"""`mercury.editModel` through the real server: two checkpoints in one process, each for its own."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import tiny
from tests.support.editor import Editor, span

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report their memory"),
    tiny.needs_kernels,
]

SERVER = [sys.executable, "-m", "mercury_lsp", "--in-process"]


def model(folder: Path, edit_format: str | None = None) -> Path:
    tiny.folder(folder, rank=0, markers=tiny.QWEN_MARKERS, **tiny.WIDE)
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"name": folder.name}))
    if edit_format is not None:
        (folder / "edit_format.json").write_text(json.dumps({"family": edit_format}))
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    model(folder / "filler")
    model(folder / "editor", "sweep")
    return folder


def opened(models: Path, **settings: Any) -> Editor:
    options = {"model": str(models / "filler"), "waitForContext": True, **settings}
    return Editor(None, SERVER, env=os.environ | {"OMP_NUM_THREADS": "1"}).initialize({}, options)


def status(editor: Editor) -> dict[str, Any]:
    return editor.request("mercury/status", {})


def logged(editor: Editor) -> list[str]:
    return [params["message"] for method, params in editor.notices if method == "window/logMessage"]


def loaded(editor: Editor) -> Editor:
    editor.until(lambda: any(line.startswith("loaded ") for line in logged(editor)))
    return editor


def ask(editor: Editor) -> None:
    """Ask for the next edit after a change that no rule goes on with."""
    uri = editor.opened("width = 1\n\nprint(width)\n")
    editor.change(uri, 2, {"range": span((1, 0), (1, 0)), "text": "height = width\n"})
    editor.request(
        "workspace/executeCommand", {"command": "mercury.nextEdit", "arguments": [{"textDocument": {"uri": uri}}]}
    )


def test_a_fill_model_and_an_edit_model_serve_together(models: Path):
    with opened(models, editModel=str(models / "editor")) as editor:
        found = status(loaded(editor))
        assert found["engine"]["name"] == "filler" and found["editModel"] == str(models / "editor")
        assert "editEngine" not in found  # loaded when it is needed
        ask(editor)
        found = status(editor)
        assert (found["engine"]["name"], found["editEngine"]["name"]) == ("filler", "editor")
        assert any(line.startswith("next edits by editor on cpu") for line in logged(editor))


def test_an_edit_model_is_not_taken_from_the_opened_repository(models: Path):
    folder = {"uri": models.as_uri(), "name": "models"}
    with Editor(None, SERVER, env=os.environ | {"OMP_NUM_THREADS": "1"}) as editor:
        editor.initialize({}, {"editModel": str(models / "editor")}, workspaceFolders=[folder])
        editor.until(lambda: any(method == "window/showMessage" for method, _ in editor.notices))
        [shown] = [params["message"] for method, params in editor.notices if method == "window/showMessage"]
        assert "is in the opened workspace and is not used" in shown
        assert "editModel" not in status(editor)
