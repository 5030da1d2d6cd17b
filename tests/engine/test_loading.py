"""Where models are found."""

import sys
from pathlib import Path

import pytest
from mercury_engine.errors import ModelNotFound
from mercury_engine.loading import find_model
from mercury_engine.model_folders import user_models


@pytest.fixture
def user(monkeypatch, tmp_path: Path) -> Path:
    """A user's home and working folder; the models are in a folder of its own below it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep user data elsewhere")
def test_a_name_is_looked_up_in_the_users_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert user_models() == tmp_path / ".local" / "share" / "mercury-lsp" / "models"
    (user_models() / "small").mkdir(parents=True)
    assert find_model("small") == user_models() / "small"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert user_models() == tmp_path / "data" / "mercury-lsp" / "models"
    with pytest.raises(ModelNotFound, match=str(user_models())):
        find_model("small")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../models/mine", "mine/../mine", "mine/x", "~", "/", ".hidden", "a\0"]
)
def test_after_its_prefix_only_the_name_of_an_installed_model_counts(user: Path, name: str):
    (user_models() / "mine" / "x").mkdir(parents=True)
    (user_models() / ".hidden").mkdir()
    (user / "theirs").mkdir()
    assert find_model("installed:mine") == user_models() / "mine"
    for wrong in (name, "theirs", str(user / "theirs"), str(user_models() / "mine")):
        with pytest.raises(ModelNotFound, match="is installed"):
            find_model(f"installed:{wrong}")


@pytest.mark.parametrize("name", ["mine", "theirs", "theirs.gguf", ".", "..", "~", ""])
def test_a_name_is_never_a_folder_or_file_that_the_working_folder_has(user: Path, name: str):
    (user / "mine").mkdir()
    (user / "theirs").mkdir()
    (user / "theirs.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelNotFound, match="is installed"):
        find_model(name)
    (user_models() / "mine").mkdir(parents=True)
    assert find_model("mine") == user_models() / "mine"
