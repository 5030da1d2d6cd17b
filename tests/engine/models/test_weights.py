"""Damaged and missing model files are refused with an error that names the file."""

import json

import pytest
import torch
from mercury_engine.errors import ModelCorrupt, ModelNotFound
from mercury_engine.models import weights
from mercury_engine.utility import Utility
from mercury_lab.engine import Engine
from safetensors.torch import load_file, save_file

from tests.support import tiny

MODEL = "model.safetensors"
NORM = "model.norm.weight"


@pytest.fixture
def folder(tmp_path):
    return tiny.folder(tmp_path / "model")


def load(folder):
    return Engine.load(folder, device="cpu", dtype=torch.float32)


def change(path, name, tensor):
    state = load_file(path)
    if tensor is None:
        del state[name]
    else:
        state[name] = tensor
    save_file(state, path)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", MODEL, "adapter.safetensors"])
def test_a_missing_file_is_not_found(folder, name):
    (folder / name).unlink()
    with pytest.raises(ModelNotFound, match=name.partition(".")[0]):
        load(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", MODEL, "adapter.safetensors"])
@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_a_truncated_file_is_corrupt_and_named(folder, name, kept):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(kept * len(content))])
    with pytest.raises(ModelCorrupt, match=name):
        load(folder)


@pytest.mark.parametrize(
    "change", [{"num_local_experts": 8}, {"layer_types": ["mamba", "attention"]}, {"position_embedding_type": None}]
)
def test_granite_4_with_experts_or_mamba_layers_is_refused(tmp_path, change):
    config = json.loads((tiny.folder(tmp_path) / "config.json").read_text())
    dense = {"layer_types": ["attention"] * 2, "num_local_experts": 0, "position_embedding_type": "rope"}
    dense |= {"model_type": "granitemoehybrid", "shared_intermediate_size": 48}
    (tmp_path / "config.json").write_text(json.dumps(config | dense))
    assert weights.read_config(tmp_path).intermediate_size == 48
    (tmp_path / "config.json").write_text(json.dumps(config | dense | change))
    with pytest.raises(ModelCorrupt, match="without experts"):
        weights.read_config(tmp_path)


@pytest.mark.parametrize("text", ["[]", "{}", '{"model_type": "llama"}', "null", '{"model_type": "gpt2"}'])
def test_a_bad_configuration_is_corrupt_and_named(folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(ModelCorrupt, match="config.json"):
        load(folder)


@pytest.mark.parametrize("text", ["[]", "{}", '{"model": {"type": "unknown"}}'])
def test_a_bad_tokenizer_is_corrupt_and_named(folder, text):
    (folder / "tokenizer.json").write_text(text)
    with pytest.raises(ModelCorrupt, match="tokenizer.json"):
        load(folder)


@pytest.mark.parametrize(("name", "tensor"), [(MODEL, NORM), ("adapter.safetensors", "markers")])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_corrupt_and_its_tensor_named(folder, name, tensor, value):
    bad = load_file(folder / name)[tensor].clone()
    bad.view(-1)[3] = value
    change(folder / name, tensor, bad)
    with pytest.raises(ModelCorrupt, match=tensor):
        load(folder)


@pytest.mark.parametrize(("name", "tensor"), [(MODEL, NORM), ("adapter.safetensors", "markers")])
def test_a_wrong_shape_is_corrupt_and_its_tensor_named(folder, name, tensor):
    change(folder / name, tensor, torch.ones(7))
    with pytest.raises(ModelCorrupt, match=tensor):
        load(folder)


@pytest.mark.parametrize(("name", "tensor"), [(MODEL, NORM), ("adapter.safetensors", "markers")])
def test_a_missing_tensor_is_corrupt_and_named(folder, name, tensor):
    change(folder / name, tensor, None)
    with pytest.raises(ModelCorrupt, match=tensor):
        load(folder)


@pytest.mark.parametrize("text", ["[1]", "{", '{"decoding": {"unknown": 1}}'])
def test_bad_settings_are_corrupt_and_named(folder, text):
    (folder / "settings.json").write_text(text)
    with pytest.raises(ModelCorrupt, match="settings.json"):
        load(folder)


def test_fitted_settings_reach_the_engine(folder):
    (folder / "settings.json").write_text(json.dumps({"utility": {"least": 2.5}, "decoding": {"bound": 0.75}}))
    engine = load(folder)
    assert (engine.utility, engine.parts.options.bound) == (Utility(least=2.5), 0.75)
