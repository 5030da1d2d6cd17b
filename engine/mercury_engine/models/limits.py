"""What a model's configuration may say, checked before anything is allocated: the files may come from anywhere."""

import math
from collections.abc import Iterator
from dataclasses import fields

from mercury_engine.models.network import ModelConfig

MAX_SIZES = {
    "vocab_size": 2**21,
    "hidden_size": 2**16,
    "intermediate_size": 2**18,
    "num_hidden_layers": 512,
    "num_attention_heads": 1024,
    "num_key_value_heads": 1024,
    "head_dim": 1024,
}
"""Largest sizes, several times those of the largest models known; the smallest is 1."""

MAX_ADAPTER_RANK = 4096

MAX_NAME_CHARS = 200


def problems(config: ModelConfig) -> Iterator[str]:
    """What is wrong with a configuration, as phrases that name the field and its value."""
    for name, most in MAX_SIZES.items():
        if not _is_integer_within(getattr(config, name), 1, most):
            yield f"{name} is {getattr(config, name)!r}; it must be an integer from 1 to {most}"
    if not _is_integer_within(config.adapter_rank, 0, MAX_ADAPTER_RANK):
        yield f"adapter_rank is {config.adapter_rank!r}; it must be an integer from 0 to {MAX_ADAPTER_RANK}"
    if _is_integer_within(config.head_dim, 1, MAX_SIZES["head_dim"]) and config.head_dim % 2:
        yield f"head_dim is {config.head_dim}; it must be even"
    for name in [field.name for field in fields(config) if field.type is float]:
        if not _is_positive(getattr(config, name)):
            yield f"{name} is {getattr(config, name)!r}; it must be a positive number"
    if config.attention_multiplier is not None and not _is_positive(config.attention_multiplier):
        yield f"attention_multiplier is {config.attention_multiplier!r}; it must be a positive number"
    if not all(map(_is_positive, config.rope_factors)):
        yield "the rotary factors are not all positive numbers"
    if not isinstance(config.name, str) or len(config.name) > MAX_NAME_CHARS or not config.name.isprintable():
        yield f"its name is not a printable text of at most {MAX_NAME_CHARS} characters"


def _is_integer_within(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
