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

SIZES = {
    "vocab_size": (1, 2**21),
    "hidden_size": (1, 2**16),
    "intermediate_size": (1, 2**18),
    "num_hidden_layers": (1, 512),
    "num_attention_heads": (1, 1024),
    "num_key_value_heads": (1, 1024),
    "head_dim": (1, 1024),
    "max_position_embeddings": (1, 2**24),
    "adapter_rank": (0, 4096),
}
"""Smallest and largest sizes; the largest are several times those of the largest models known."""

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
    for name, (least, most) in SIZES.items():
        value = getattr(config, name)
        if type(value) is not int or not least <= value <= most:
            yield f"{name} is {value!r}; it must be an integer from {least} to {most}"
        elif name == "head_dim" and value % 2:
            yield f"head_dim is {value}; it must be even"
    heads, key_heads = config.num_attention_heads, config.num_key_value_heads
    if type(heads) is type(key_heads) is int and key_heads > 0 and heads % key_heads:
        yield f"{heads} query heads do not share {key_heads} key heads evenly"
    numbers = {field.name: getattr(config, field.name) for field in fields(config) if field.type is float}
    if config.attention_multiplier is not None:
        numbers["attention_multiplier"] = config.attention_multiplier
    for name, value in numbers.items():
        if not _is_positive(value):
            yield f"{name} is {value!r}; it must be a positive number"
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


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
