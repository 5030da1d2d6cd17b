"""Checks of a model's configuration before anything is allocated: its files may come from anywhere."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

from mercury_kernels.cpu.blocks import GROUP, Q8_0

from mercury_engine.errors import DeviceError, ModelCorrupt, ModelError
from mercury_engine.models.memory import available_bytes
from mercury_engine.models.network import ModelConfig

MAX_SIZES = {
    "vocab_size": 2**21,
    "hidden_size": 2**16,
    "intermediate_size": 2**18,
    "num_hidden_layers": 512,
    "num_attention_heads": 1024,
    "num_key_value_heads": 1024,
    "head_dim": 1024,
    "max_position_embeddings": 2**24,
}
"""Largest sizes, several times those of the largest models known; the smallest is 1."""

MAX_ADAPTER_RANK = 4096

MAX_NAME_CHARS = 200

LEAST_BYTES, MOST_BYTES = 0.5, 5.0
"""Bytes of a parameter on disk: 4.5 bits in Q4_0, 4 bytes in float32 and room for what is stored twice."""


WORKING_BYTES = 512 << 20
"""Memory of a GPU beside the weights: CUDA's own, contexts and intermediate results."""


class GpuMemory(NamedTuple):
    """A GPU's free memory, and how it holds weights."""

    free_bytes: int
    element_bytes: int
    """Of a float."""
    has_codes: bool = False
    """Whether the layers' weights have eight bits."""

    def needed(self, config: ModelConfig) -> int:
        """Bytes that a model takes: weights, the largest matrix as floats if it is held in codes, and work."""
        if not self.has_codes:
            return parameters(config) * self.element_bytes + WORKING_BYTES
        layers = config.num_hidden_layers * config.layer_parameters
        floats = parameters(config) - layers + 2 * config.intermediate_size * config.hidden_size
        return floats * self.element_bytes + layers * Q8_0.size // GROUP + WORKING_BYTES

    def for_model(self, config: ModelConfig) -> "GpuMemory":
        """The same memory with weights in eight bits where they do not fit as floats."""
        inputs = config.hidden_size, config.num_attention_heads * config.head_dim, config.intermediate_size
        can_have_codes = not any(each % GROUP for each in inputs)
        return self._replace(has_codes=self.has_codes or (can_have_codes and self.needed(config) > self.free_bytes))


def problems(config: ModelConfig) -> Iterator[str]:
    """What is wrong with a configuration, as phrases that name the field and its value."""
    for name, most in MAX_SIZES.items():
        if not _is_integer_within(getattr(config, name), 1, most):
            yield f"{name} is {getattr(config, name)!r}; it must be an integer from 1 to {most}"
    if not _is_integer_within(config.adapter_rank, 0, MAX_ADAPTER_RANK):
        yield f"adapter_rank is {config.adapter_rank!r}; it must be an integer from 0 to {MAX_ADAPTER_RANK}"
    if _is_integer_within(config.head_dim, 1, MAX_SIZES["head_dim"]) and config.head_dim % 2:
        yield f"head_dim is {config.head_dim}; it must be even"
    heads, key_heads = config.num_attention_heads, config.num_key_value_heads
    if type(heads) is type(key_heads) is int and key_heads > 0 and heads % key_heads:
        yield f"{heads} query heads do not share {key_heads} key heads evenly"
    for name in [field.name for field in fields(config) if field.type is float]:
        if not _is_positive(getattr(config, name)):
            yield f"{name} is {getattr(config, name)!r}; it must be a positive number"
    if config.attention_multiplier is not None and not _is_positive(config.attention_multiplier):
        yield f"attention_multiplier is {config.attention_multiplier!r}; it must be a positive number"
    if not all(map(_is_positive, config.rope_factors)):
        yield "the rotary factors are not all positive numbers"
    if not isinstance(config.name, str) or len(config.name) > MAX_NAME_CHARS or not config.name.isprintable():
        yield f"its name is not a printable text of at most {MAX_NAME_CHARS} characters"


def require_fit(config: ModelConfig, files: Sequence[Path], gpu: GpuMemory | None = None) -> None:
    """Check the size of the weight files against the configuration and the free memory, before they are read.

    `gpu`: the target of the weights; None: the host. Raises ModelCorrupt and ModelError; DeviceError if a GPU is too
    small.
    """
    wanted, stored = parameters(config), sum(path.stat().st_size for path in files)
    named = ", ".join(map(str, files[:2])) + ", ..." * (len(files) > 2)
    if not LEAST_BYTES * wanted <= stored <= MOST_BYTES * wanted:
        raise ModelCorrupt(
            f"{named}: {stored:,} bytes, where the configuration describes {wanted:,} parameters; "
            "the files do not belong together: fetch the model again"
        )
    if gpu is not None:
        if (needed := gpu.needed(config)) > gpu.free_bytes:
            raise DeviceError(
                f"{named} needs {needed / 1e9:.1f} GB of the GPU's memory, {gpu.free_bytes / 1e9:.1f} GB are free; "
                "close other programs that use the GPU, choose a smaller model, or set mercury.device to 'cpu'"
            )
        return
    left = available_bytes()
    if left is not None and stored > left:
        raise ModelError(
            f"{named} needs {stored / 1e9:.1f} GB of memory, {left / 1e9:.1f} GB are left; close other "
            "programs, or choose a smaller model: mercury-lsp models list"
        )


def parameters(config: ModelConfig) -> int:
    """Number of weights in the matrices of the configuration."""
    embeddings = 1 if config.tie_word_embeddings else 2
    return embeddings * config.vocab_size * config.hidden_size + config.num_hidden_layers * config.layer_parameters


def _is_integer_within(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
