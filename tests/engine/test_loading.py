"""Where models are found."""

import sys
from pathlib import Path

import pytest
from mercury_engine.errors import ModelNotFound
from mercury_engine.loading import find_model
from mercury_engine.model_folders import user_models


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


@pytest.mark.parametrize("name", ["", ".", "..", "../models/mine", "mine/../mine", "mine/x", "~", "/"])
def test_after_its_prefix_only_the_name_of_an_installed_model_counts(monkeypatch, tmp_path, name):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (user_models() / "mine" / "x").mkdir(parents=True)
    (tmp_path / "theirs").mkdir()
    assert find_model("installed:mine") == user_models() / "mine"
    assert find_model("theirs") == Path("theirs")
    for wrong in (name, "theirs", str(tmp_path / "theirs"), str(user_models() / "mine")):
        with pytest.raises(ModelNotFound, match="is installed"):
            find_model(f"installed:{wrong}")


def test_a_path_comes_before_a_name(tmp_path):
    assert find_model(tmp_path) == Path(tmp_path)
