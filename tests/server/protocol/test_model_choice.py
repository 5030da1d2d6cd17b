"""A repository must not choose the model: through the real server, with folders that a repository brings along."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mercury_lsp.cli import main
from tests.support import tiny
from tests.support.editor import Editor

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="other systems keep user data elsewhere"),
    tiny.needs_kernels,
]

SERVER = [sys.executable, "-m", "mercury_lsp", "--in-process"]


def model(folder: Path, name: str) -> Path:
    tiny.folder(folder, rank=0, **tiny.WIDE)
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"name": name}))
    return folder


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an installed model `mine`, and a repository with a model in `mine` and in `theirs`."""
    home = tmp_path_factory.mktemp("home")
    model(home / "data" / "mercury-lsp" / "models" / "mine", "the user's")
    for name in ("mine", "theirs"):
        model(home / "repository" / name, "the repository's")
    (home / "repository" / "file.py").write_text("x = 1\n")
    (home / "link").symlink_to(home / "repository" / "theirs", target_is_directory=True)
    return home


def opened(user: Path, options: Any, answers: Any = None, capabilities: Any = None) -> Editor:
    """An editor that was started in the repository and has opened it."""
    environment = os.environ | {"HOME": str(user), "XDG_DATA_HOME": str(user / "data"), "OMP_NUM_THREADS": "1"}
    environment.pop("XDG_STATE_HOME", None)
    editor = Editor(answers, SERVER, env=environment, cwd=user / "repository")
    folder = {"uri": (user / "repository").as_uri(), "name": "repository"}
    return editor.initialize(capabilities, options, workspaceFolders=[folder])


def name(editor: Editor) -> Any:
    """The loaded model's name, once one is."""
    status = editor.request("mercury/status", {})
    while "engine" not in status:
        time.sleep(0.02)
        assert status["kind"] != "Error"
        status = editor.request("mercury/status", {})
    return status["engine"]["name"]


def refused(editor: Editor, count: int) -> str:
    """The last of this many warnings."""

    def warnings() -> list[str]:
        return [params["message"] for method, params in editor.notices if method == "window/showMessage"]

    editor.until(lambda: len(warnings()) == count)
    return warnings()[-1]


def test_an_installed_models_name_never_means_the_repositorys_folder_of_that_name(user: Path):
    with opened(user, {"model": "mine"}) as editor:
        assert name(editor) == "the user's"


@pytest.mark.parametrize("how", ["options", "configuration"])
def test_a_repositorys_folder_is_refused_from_the_first_settings_on(user: Path, how: str):
    setting = {"model": "./theirs"}
    answers = {"workspace/configuration": lambda params: [setting for _ in params["items"]]}
    asked = {} if how == "options" else {"workspace": {"configuration": True}}
    with opened(user, setting if how == "options" else {}, answers, asked) as editor:
        assert "give the absolute path, or run mercury-lsp models add" in refused(editor, 1)
        assert name(editor) == "Mercury 135M"


def test_a_repositorys_folder_is_refused_however_it_is_written(user: Path):
    repository = user / "repository"
    relative = ["./theirs", "theirs/", "../repository/theirs", "./", "theirs/model.safetensors"]
    inside = [
        f"{repository}/theirs",
        f"{user}/x/../repository/theirs",
        "~/repository/theirs",
        f"{user}/link",
        "/proc/self/cwd/theirs",
    ]
    prefixed = ["installed:./theirs", f"installed:{repository}/theirs", "installed:../models/mine"]
    with opened(user, {"model": "mine"}) as editor:
        assert name(editor) == "the user's"
        for count, wrong in enumerate([*relative, *inside, *prefixed, "~nobody-has-this-name/x", "/x\0y"], 1):
            editor.notify("workspace/didChangeConfiguration", {"settings": {"mercury": {"model": wrong}}})
            shown = refused(editor, count)
            if wrong in relative:
                assert "give the absolute path" in shown
            elif wrong in inside:
                assert "is in the opened workspace and is not used" in shown
            elif wrong in prefixed:
                assert "a workspace may name an installed model, but not the folder" in shown
            assert name(editor) == "the user's"


def test_a_folder_outside_of_the_workspace_is_the_users_own(user: Path):
    own = model(user / "own", "the user's own")
    with opened(user, {"model": str(own)}) as editor:
        assert name(editor) == "the user's own"


def test_adding_a_name_never_adds_the_repositorys_folder_of_that_name(user: Path, monkeypatch, capfd):
    monkeypatch.setenv("XDG_DATA_HOME", str(user / "data"))
    monkeypatch.chdir(user / "repository")
    model(user / "repository" / "owner" / "name", "the repository's")
    assert main(["models", "add", "theirs"]) == 2
    assert "./theirs" in capfd.readouterr().err
    assert main(["models", "add", "owner/name", "--yes"]) == 2
    assert "./owner/name" in capfd.readouterr().err
    assert main(["models", "use", "theirs"]) == 2
    assert "theirs is not installed" in capfd.readouterr().err
    assert not (user / "data" / "mercury-lsp" / "default-model").exists()
