"""Sharded safetensors: the index says which files belong to the model."""

import json
from pathlib import Path

import pytest
from mercury_engine.errors import ModelCorrupt, ModelNotFound
from safetensors.torch import load_file, save_file

from tests.support import tiny


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """A folder whose weights are in two files with names of their own, beside a file that does not count."""
    folder = tiny.folder(tmp_path / "model", rank=0)
    state = load_file(folder / "model.safetensors")
    names = sorted(state)
    shards = {"first.safetensors": names[::2], "second.safetensors": names[1::2]}
    for shard, of in shards.items():
        save_file({name: state[name] for name in of}, folder / shard)
    index = {"metadata": {}, "weight_map": {name: shard for shard, of in shards.items() for name in of}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors").write_bytes(b"an older file")
    return folder


def test_a_missing_shard_is_named(sharded):
    (sharded / "second.safetensors").unlink()
    with pytest.raises(ModelNotFound, match=r"lacks second\.safetensors, which .*index\.json lists"):
        tiny.load(sharded)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": 1}'])
def test_a_damaged_index_is_corrupt_and_named(sharded, text):
    (sharded / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ModelCorrupt, match=r"index\.json"):
        tiny.load(sharded)
