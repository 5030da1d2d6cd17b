"""Scaled rotary frequencies are those of transformers."""

import numpy as np
from mercury_engine.models.weights import rope_factors
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

LLAMA_3 = {
    "rope_type": "llama3",
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
    "rope_theta": 500_000.0,
}


def test_llama_3_divides_slow_frequencies():
    config = LlamaConfig(head_dim=64, rope_parameters=LLAMA_3, max_position_embeddings=131_072)
    expected, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    plain = 500_000.0 ** (-np.arange(0, 64, 2) / 64)
    factors = rope_factors({"rope_scaling": LLAMA_3}, 64, 500_000.0)
    assert np.allclose(plain / factors, expected.numpy(), rtol=1e-5)
    assert factors[0] == 1 and factors[-1] == 32
