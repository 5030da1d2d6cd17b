"""GGUF files are loaded as they are, and what cannot be loaded is refused with the reason."""

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.device.torch_network import TorchNetwork
from mercury_engine.errors import ModelCorrupt, ModelError
from mercury_engine.models import decoder_weights, weights
from mercury_engine.models.cpu import CpuNetwork, layers_for
from mercury_engine.models.gguf.file import opened
from mercury_engine.models.network import ForwardRequest, Network
from mercury_lab.engine import Engine
from safetensors.torch import save_file

from tests.support import tiny, tiny_gguf

FAMILIES: dict[str, dict[str, object]] = {"llama": {}, "qwen2": {"attention_bias": True}, "qwen3": {"qk_norm": True}}

REQUEST = FillRequest(near="def f(a):\n    return ", suffix=("\n",), max_slots=4)

IDS = np.array([1, 5, 9, 33, 21])


def network(family: str = "llama", **changes):
    return tiny.network(0, intermediate_size=64, **FAMILIES[family], **changes)


def written(folder: Path, family: str = "llama", **metadata: object) -> Path:
    return tiny_gguf.convert(folder / "tiny.gguf", network(family), family, **metadata)


def read(network: Network) -> np.ndarray:
    [(hidden, _)] = network.read_together([ForwardRequest(IDS, [], 0)])
    return np.asarray(hidden)


def in_torch(model: Path) -> TorchNetwork:
    return TorchNetwork(decoder_weights.load(model, torch.float32, torch.device("cpu")))


def close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert np.linalg.norm(found - expected) < tolerance * np.linalg.norm(expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_file_computes_what_its_checkpoint_does(tmp_path, family):
    made = network(family)
    file = in_torch(tiny_gguf.convert(tmp_path / "tiny.gguf", made, family))
    shape = {name: getattr(made.config, name) for name in made.config.__slots__ if name != "name"}
    assert {name: getattr(file.config, name) for name in shape} == shape
    close(read(file), read(TorchNetwork(made)), 0.03)  # Q8_0 rounds


@pytest.mark.parametrize(("architecture", "shifted"), [("dream", True), ("llada", False)])
def test_a_file_of_a_masked_model_computes_what_its_checkpoint_does(tmp_path, architecture, shifted):
    """llama.cpp writes no `diffusion.shift_logits` for Dream, whose rows predict the next token."""
    made = network("qwen2" if architecture == "dream" else "llama")
    more = {} if shifted else {"diffusion.shift_logits": False}
    metadata = {"tokenizer.ggml.mask_token_id": 7, f"{architecture}.attention.causal": False} | more
    full = gguf.GGMLQuantizationType.F32
    path = tiny_gguf.convert(tmp_path / "tiny.gguf", made, architecture, full, **metadata)
    engine = Engine.load(path, device="cpu", dtype=torch.float32)
    attention = engine.reader.config.masked_attention
    assert (attention.mask_id, attention.shifted, attention.block) == (7, shifted, None)
    forward = ForwardRequest(IDS, block=None)
    [(found, _)], [(expected, _)] = (each.read_together([forward]) for each in (engine.reader, TorchNetwork(made)))
    assert np.asarray(found) == pytest.approx(np.asarray(expected), abs=1e-4)
    assert engine.fill(REQUEST).steps > 0


@tiny.needs_kernels
@pytest.mark.parametrize("family", FAMILIES)
def test_the_kernels_compute_what_torch_does(tmp_path, family):
    made = network(family, head_dim=64)
    path = tiny_gguf.convert(tmp_path / "tiny.gguf", made, family)
    config = weights.read_config(path)
    close(read(CpuNetwork(path, config, layers_for(config, 2))), read(in_torch(path)), 0.05)


@tiny.needs_kernels
def test_a_folder_may_hold_a_change_of_its_reader(tmp_path):
    made = network(head_dim=64)
    tiny_gguf.convert(tmp_path / "tiny.gguf", made, "llama")
    config = weights.read_config(tmp_path)
    layers = layers_for(config, 1)
    torch.manual_seed(1)
    change = {}
    for number in range(config.num_hidden_layers):
        for which, (outputs, inputs) in layers.shapes.items():
            change[f"layers.{number}.{which}.down"] = torch.randn(4, inputs) * 0.1
            change[f"layers.{number}.{which}.up"] = torch.randn(outputs, 4) * 0.1
    before = read(in_torch(tmp_path))
    save_file(change, tmp_path / weights.READER_FILE)
    after = read(in_torch(tmp_path))
    assert np.linalg.norm(after - before) > 0.1 * np.linalg.norm(before)
    close(read(CpuNetwork(tmp_path, config, layers)), after, 0.05)


def test_a_header_is_read_once_and_again_when_the_file_changes(tmp_path):
    path = written(tmp_path)
    assert opened(path) is opened(path)
    before = weights.read_config(path)
    tiny_gguf.convert(path, network(), "llama", **{"llama.rope.freq_base": 5e5})
    assert (before.rope_theta, weights.read_config(path).rope_theta) == (1e4, 5e5)


# Refusals

METADATA = [
    ("gemma2", {}, "architecture gemma2 is not supported; choose a model of one of llama, qwen2, qwen3"),
    ("llama", {"llama.expert_count": 8}, "has experts"),
    ("llama", {"llama.attention.head_count": [4, 4]}, "layers differ in attention.head_count"),
    ("llama", {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0}, r"scales rotary angles \(yarn\)"),
    ("llama", {"split.count": 3}, "one of 3 parts; join them first: llama-gguf-split --merge"),
    ("llama", {"tokenizer.ggml.model": "llama"}, "of kind 'llama', only byte-level BPE"),
]


@pytest.mark.parametrize(("family", "metadata", "said"), METADATA)
def test_what_cannot_be_run_is_refused_with_the_reason(tmp_path, family, metadata, said):
    path = tiny_gguf.convert(tmp_path / "tiny.gguf", network(), family, **metadata)
    with pytest.raises(ModelError, match=said):
        tiny.load(path)


def changed(path: Path, old: bytes, new: bytes) -> Path:
    """The file with its first bytes of this value replaced by as many."""
    assert len(old) == len(new)
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))
    return path


def test_an_unknown_quantisation_is_refused_by_its_name(tmp_path):
    name, shape = b"blk.0.ffn_down.weight", np.array([64, 32], np.uint64).tobytes()
    start = name + np.uint32(2).tobytes() + shape
    path = changed(written(tmp_path), start + np.uint32(8).tobytes(), start + np.uint32(10).tobytes())
    with pytest.raises(
        ModelError, match=r"ffn_down\.weight is quantised as Q2_K, .* fetch the model as Q4_K_M or Q8_0"
    ):
        tiny.load(path)


@pytest.mark.parametrize("kept", [0, 3, 4, 20, 0.02, 0.2, 0.9, 0.999])
def test_a_truncated_file_is_refused_and_named(tmp_path, kept):
    path = written(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: kept if isinstance(kept, int) else int(kept * len(content))])
    with pytest.raises(ModelCorrupt, match=r"tiny\.gguf .*fetch it again"):
        tiny.load(path)


DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda content: b"GGML" + content[4:],
    lambda content: content[:4] + b"\x09" + content[5:],
    lambda content: content[:16] + b"\xff" * 8 + content[24:],
    lambda content: content[:24] + b"\xff" * 8 + content[32:],
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_header_is_refused(tmp_path, damage):
    path = written(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelCorrupt, match="fetch it again"):
        tiny.load(path)
