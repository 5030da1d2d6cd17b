"""The decoder computes what its checkpoint does, in pieces too."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.device.torch_network import TorchNetwork
from mercury_engine.models import decoder_weights
from mercury_engine.models.network import ForwardRequest, join
from transformers import (
    GraniteConfig,
    GraniteForCausalLM,
    GraniteMoeHybridConfig,
    GraniteMoeHybridForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from tests.support import tiny

SHAPE = {
    "vocab_size": 500,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
}


GRANITE = {  # 4.1's 3B in small: five queries share a key, input and output share their embedding
    "hidden_size": 40,
    "num_attention_heads": 5,
    "num_key_value_heads": 1,
    "tie_word_embeddings": True,
    "embedding_multiplier": 12,
    "attention_multiplier": 0.125,
    "residual_multiplier": 0.22,
    "logits_scaling": 10,
}

KINDS = {
    "llama": (LlamaConfig, LlamaForCausalLM, {}),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, {"tie_word_embeddings": True}),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 16}),
    "granite 4.1": (GraniteConfig, GraniteForCausalLM, GRANITE),
    "granite 4": (
        GraniteMoeHybridConfig,
        GraniteMoeHybridForCausalLM,
        GRANITE
        | {
            "mamba_n_heads": 5,
            "num_local_experts": 0,
            "layer_types": ["attention"] * 2,
            "shared_intermediate_size": 48,
            "position_embedding_type": "rope",
        },
    ),
}


@pytest.fixture
def ids():
    return np.random.default_rng(1).integers(1, 500, 20)


@pytest.fixture
def network():
    return TorchNetwork(tiny.network())


def close(left, right, atol=1e-4):
    torch.testing.assert_close(left, right, atol=atol, rtol=1e-4)


def saved(kind, path):
    """A random checkpoint saved by transformers, with every bias and norm away from its neutral value."""
    torch.manual_seed(0)
    config_class, model_class, more = KINDS[kind]
    model = model_class(config_class(**SHAPE | {"tie_word_embeddings": False} | more)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(path, safe_serialization=True)
    tiny.tokenizer().save(str(path / "tokenizer.json"))
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_logits_equal_those_of_transformers(kind, tmp_path, ids):
    model = saved(kind, tmp_path)
    network = TorchNetwork(decoder_weights.load(tmp_path, torch.float32, torch.device("cpu")))
    with torch.no_grad():
        expected = model(torch.from_numpy(ids)[None]).logits[0]
    [(hidden, _)] = network.read_together([ForwardRequest(ids)])
    assert (network.decoder.layers[0].qkv.bias is not None) == (kind == "qwen2")
    close(network.decoder.logits(hidden), expected)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])  # with random weights, a tied Granite copies its input
def test_a_plain_checkpoint_fills_one_slot_a_step(kind, tmp_path):
    saved(kind, tmp_path)
    engine = tiny.load(tmp_path)
    fill, canvases = tiny.watched(engine, FillRequest(near="x = 1", suffix=("\n",), max_slots=8, multiline=True))
    assert not engine.reader.config.adapter_rank
    accepted = [sum(slot.state == "committed" for slot in canvas) for canvas in canvases]
    assert fill.steps == len(accepted) - 1 > 2
    steps = [now - before for before, now in pairwise(accepted)]
    assert set(steps[:-1]) == {1}
    assert steps[-1] <= 1  # the last may be the end marker instead


def test_reading_in_pieces_equals_reading_at_once(network, ids):
    [(whole, block)] = network.read_together([ForwardRequest(ids)])
    sides, hidden, start = [], [], 0
    for size in (7, 1, 12):
        [(part, piece)] = network.read_together([ForwardRequest(ids[start : start + size], sides, start)])
        sides = [join([*sides, network.rotated(piece, start)])]
        hidden.append(part)
        start += size
    close(torch.cat(hidden), whole)
    close(sides[0].keys, network.rotated(block, 0).keys)
