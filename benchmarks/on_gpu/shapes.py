"""Networks of the measured shapes with random weights."""

import torch
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import ModelConfig


def config(name: str, vocabulary: int, channels: int, inner: int, layers: int, heads: int, keys: int, **more: object):
    """A configuration; `more`: attention_bias, tie_word_embeddings."""
    width = channels // heads
    return ModelConfig(vocabulary, channels, inner, layers, heads, keys, width, 1e6, 1e-6, name=name, **more)


MODELS = (
    config("bundled 135M", 23174, 576, 1536, 30, 9, 3),
    config("Qwen2.5 0.5B shape", 151936, 896, 4864, 24, 14, 2, attention_bias=True),
    config("Dream 7B shape", 152064, 3584, 18944, 28, 28, 4, attention_bias=True, tie_word_embeddings=False),
)
ROWS, CONTEXT = 16, 1536
"""Rows of a measured pass, and tokens of context."""

TINY_MODELS = (
    config("tiny", 300, 32, 48, 2, 4, 2),
    config("tiny with bias", 200, 48, 64, 1, 3, 1, attention_bias=True, tie_word_embeddings=False),
)


def network(shape: ModelConfig, dtype: torch.dtype, device: torch.device) -> TorchDecoder:
    """A network with random weights, scaled so that activations neither vanish nor explode."""
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with device:
            made = TorchDecoder(shape)
    finally:
        torch.set_default_dtype(before)
    for name, parameter in made.named_parameters():
        parameter.requires_grad_(False)
        if name.endswith("norm"):
            parameter.fill_(1.0)
        elif name.endswith("bias"):
            parameter.normal_(0, 0.02)
        else:
            parameter.normal_(0, parameter.shape[-1] ** -0.5)
    return made.eval()
