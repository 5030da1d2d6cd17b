"""Configurations that no model has are refused before anything is allocated, by an error that names the field."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from mercury_engine.errors import ModelCorrupt, ModelNotFound
from mercury_engine.models import weights
from mercury_lab.engine import Engine

from tests.support import tiny
from tests.support.editor import PATIENCE


@pytest.fixture
def folder(tmp_path):
    return tiny.folder(tmp_path / "model")


def write(path, **fields):
    path.write_text(json.dumps(json.loads(path.read_text()) | fields) if path.exists() else json.dumps(fields))


HUGE = 10**9

WRONG = [
    {"adapter_rank": HUGE},
    {"adapter_rank": -1},
    {"adapter_rank": 4.0},
    {"adapter_rank": True},
    {"num_hidden_layers": 0},
    {"num_hidden_layers": 30_000},
    {"vocab_size": HUGE},
    {"hidden_size": -32},
    {"hidden_size": "32"},
    {"intermediate_size": HUGE},
    {"num_attention_heads": 0},
    {"num_key_value_heads": -2},
    {"head_dim": 7},
    {"head_dim": HUGE},
    {"rms_norm_eps": float("nan")},
    {"rms_norm_eps": 0},
    {"rms_norm_eps": "small"},
    {"rope_theta": float("inf")},
    {"rope_theta": -1.0},
    {"embedding_multiplier": float("nan")},
    {"attention_multiplier": float("inf")},
    {"residual_multiplier": float("inf")},
    {"logits_scaling": 0},
    {"name": "a\x1b[2Jname"},
    {"name": "two\nlines"},
    {"name": 7},
    {"name": "x" * 10_000},
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong)[:40])
def test_a_configuration_that_no_model_has_is_refused_before_weights_are_opened(folder, monkeypatch, wrong):
    write(folder / "config.json", **wrong)
    monkeypatch.setattr(weights, "StoredTensors", lambda *_: pytest.fail("the weights were opened"))
    with pytest.raises(ModelCorrupt, match=r"config\.json") as refused:
        Engine.load(folder, device="cpu")
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "settings",
    [
        {"utility": {"least": float("nan")}},
        {"utility": {"wrong_cost": float("inf")}},
        {"utility": {"least": "4"}},
        {"decoding": {"recall": float("nan")}},
        {"decoding": {"lookahead": HUGE}},
        {"decoding": {"lookahead": -1}},
        {"calibration": [[0, 0], [float("nan"), 1]]},
        {"calibration": [[0, 0, 0]]},
        {"calibration": [[1, 1], [0, 0]]},
        {"calibration": 7},
    ],
    ids=repr,
)
def test_settings_out_of_range_are_refused(tmp_path, settings):
    folder = tiny.folder(tmp_path, rank=0)
    write(folder / "settings.json", **settings)
    with pytest.raises(ModelCorrupt, match=r"settings\.json"):
        Engine.load(folder, device="cpu")


@pytest.mark.parametrize("options", [{"bound": float("inf")}, {"threshold": float("nan")}], ids=repr)
def test_options_of_a_masked_model_out_of_range_are_refused(tmp_path, options):
    folder = tiny.folder(tmp_path)
    write(folder / "settings.json", decoding=options)
    with pytest.raises(ModelCorrupt, match=r"settings\.json"):
        Engine.load(folder, device="cpu")


@pytest.mark.parametrize(
    "name", ["model.safetensors", "adapter.safetensors", "tokenizer.json", "config.json", "m.gguf"]
)
def test_a_pipe_in_place_of_a_file_is_not_waited_for(folder, name):
    (folder / name).unlink(missing_ok=True)
    if name == "m.gguf":
        (folder / "config.json").unlink()
    os.mkfifo(folder / name)
    with ThreadPoolExecutor() as pool, pytest.raises((ModelNotFound, ModelCorrupt)):
        pool.submit(Engine.load, folder, device="cpu").result(PATIENCE)
