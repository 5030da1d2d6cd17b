"""Networks of the measured shapes with random weights, and contexts for them.

Dimensions: L layers, H key heads, T tokens, D head width.
"""

from dataclasses import dataclass

import torch
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import KeyValueSegment, ModelConfig


@dataclass(frozen=True, slots=True)
class Point:
    """One measured setting: slots of a canvas, tokens of context, sessions served at once."""

    slots: int
    context: int
    sessions: int


def config(name: str, vocabulary: int, channels: int, inner: int, layers: int, heads: int, keys: int, **more: object):
    """A configuration; `more`: attention_bias, tie_word_embeddings."""
    width = channels // heads
    return ModelConfig(vocabulary, channels, inner, layers, heads, keys, width, 1e6, 1e-6, name=name, **more)


MODELS = (
    config("bundled 135M", 23174, 576, 1536, 30, 9, 3),
    config("Qwen2.5 0.5B shape", 151936, 896, 4864, 24, 14, 2, attention_bias=True),
    config("Dream 7B shape", 152064, 3584, 18944, 28, 28, 4, attention_bias=True, tie_word_embeddings=False),
)
MAIN_POINT = Point(32, 1536, 1)
POINTS = (
    MAIN_POINT,
    *(Point(slots, 1536, 1) for slots in (16, 64)),
    *(Point(32, context, 1) for context in (512, 4096)),
    *(Point(32, 1536, sessions) for sessions in (8, 64)),
    Point(64, 4096, 64),
)
"""First one axis at a time around the main point, then a corner; the others follow while there is time."""
OTHER_POINTS = tuple(
    point
    for point in (Point(s, c, b) for b in (1, 8, 64) for c in (512, 1536, 4096) for s in (16, 32, 64))
    if point not in POINTS
)

TINY_MODELS = (
    config("tiny", 300, 32, 48, 2, 4, 2),
    config("tiny with bias", 200, 48, 64, 1, 3, 1, attention_bias=True, tie_word_embeddings=False),
)
TINY_MAIN = Point(4, 40, 1)
TINY_POINTS = (TINY_MAIN, Point(8, 20, 2))


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


def sides(made: TorchDecoder, point: Point) -> list[tuple[KeyValueSegment, KeyValueSegment]]:
    """For every session a prefix of three quarters of the context and a suffix, all different, in little memory."""
    shape, device = made.config, made.device
    size = (shape.num_hidden_layers, 1, shape.num_key_value_heads, point.context + point.sessions, shape.head_dim)
    keys, values = (torch.randn(size, dtype=made.embedding.dtype, device=device) for _ in range(2))
    cut = point.context * 3 // 4

    def part(start: int, stop: int) -> KeyValueSegment:
        return KeyValueSegment(keys[:, :, :, start:stop], values[:, :, :, start:stop])

    return [(part(i, i + cut), part(i + cut, i + point.context)) for i in range(point.sessions)]
