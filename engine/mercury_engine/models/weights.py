"""A model's files: its configuration, its tensors, its adapters and its settings.

A model is a path: a folder with safetensors, or a GGUF file, see `gguf`.

Adapters are low-rank changes for the rows after a context that the untouched model has read. An adapter of a model is a
file NAME.adapter.safetensors in its folder; that with which a masked model denoises is adapter.safetensors. For every
fused matrix it has the factors `layers.N.MATRIX.down` [N,in] and `.up` [out,N]. The metadata of a named adapter give
its format and the shape of its base. Low-rank changes are from arXiv 2106.09685, reading the context without them from
arXiv 2504.12397.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from mercury_kernels.cpu.blocks import Q8_0, Floats
from mercury_kernels.cpu.layers import VectorName

from mercury_engine.errors import ModelCorrupt, ModelError, ModelNotFound
from mercury_engine.model_folders import read_json
from mercury_engine.models import limits, masked_families
from mercury_engine.models.gguf.checkpoint import GgufTensors, config_of
from mercury_engine.models.gguf.file import gguf_of, opened
from mercury_engine.models.network import CONTEXT_LENGTH, Kind, ModelConfig
from mercury_engine.models.tensors import StoredTensors, Tensors, weight_files

READER_FILE = "reader.safetensors"
"""Optional: a trained low-rank change of every matrix of the reader."""

ADAPTER_FILES = "adapter*.safetensors"
"""The adapter with which a masked model denoises."""

LOADER_THREADS = 2
"""They unpack matrices, and quantise them for a CPU, while a model is loaded."""

FAMILIES = ("granite", "granitemoehybrid", "llama", "mercury", "qwen2", "qwen3")
"""Supported values of `model_type`; `granitemoehybrid` is Granite 4, without experts and with attention only."""

AdapterName = Literal["gap", "edit"]
"""What an adapter was trained for: to fill gaps, or to rewrite regions."""

ADAPTERS: tuple[AdapterName, ...] = get_args(AdapterName)

ADAPTER_FORMAT = "mercury-adapter-1"
"""Version of the layout of requests that an adapter was trained on."""

FUSED_MATRICES = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "out": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}

GRANITE_4_MATRICES = FUSED_MATRICES | {"gate_up": ("shared_mlp.input_linear",), "down": ("shared_mlp.output_linear",)}


def read_config(folder: Path) -> ModelConfig:
    """The configuration of a model of one of FAMILIES: its config.json or its GGUF metadata. Raises ModelError."""
    gguf = gguf_of(folder)
    path = gguf or folder / "config.json"
    if not path.is_file():
        raise ModelNotFound(f"no config.json in {folder}; set mercury.model to a model folder or a model name")
    try:
        config = config_of(opened(gguf)) if gguf else _parse_config(read_json(path), path)
    except (ArithmeticError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelCorrupt(f"{path} has no valid configuration ({error!r}); fetch the model again") from error
    if found := list(limits.problems(config)):
        raise ModelCorrupt(f"{path}: {'; '.join(found)}; fetch the model again, or choose another one")
    return config


def _parse_config(raw: dict[str, Any], path: Path) -> ModelConfig:
    kind, attention = masked_families.read(raw, path.parent) or (raw["model_type"], None)
    if kind not in FAMILIES:
        raise ModelCorrupt(f"{path}: model_type {kind!r} is not supported; use a checkpoint of {', '.join(FAMILIES)}")
    if kind == "granitemoehybrid":
        raw = raw | {"intermediate_size": _granite_4_width(raw, path)}
    heads = raw["num_attention_heads"]
    theta = float(raw.get("rope_theta") or raw["rope_parameters"]["rope_theta"])
    width = raw.get("head_dim") or raw["hidden_size"] // heads
    return ModelConfig(
        vocab_size=raw["vocab_size"],
        hidden_size=raw["hidden_size"],
        intermediate_size=raw["intermediate_size"],
        num_hidden_layers=raw["num_hidden_layers"],
        num_attention_heads=heads,
        num_key_value_heads=raw.get("num_key_value_heads") or heads,
        head_dim=width,
        rope_theta=theta,
        rms_norm_eps=raw["rms_norm_eps"],
        attention_bias=kind == "qwen2" or bool(raw.get("attention_bias", False)),
        qk_norm=kind == "qwen3" or bool(raw.get("qk_norm", False)),
        tie_word_embeddings=raw.get("tie_word_embeddings", True),
        embedding_multiplier=float(raw.get("embedding_multiplier", 1.0)),
        attention_multiplier=raw.get("attention_multiplier"),
        residual_multiplier=float(raw.get("residual_multiplier", 1.0)),
        logits_scaling=float(raw.get("logits_scaling", 1.0)),
        rope_factors=rope_factors(raw, width, theta),
        max_position_embeddings=raw.get("max_position_embeddings", CONTEXT_LENGTH),
        name=raw.get("name", path.parent.name),
        kind=_kind(raw, path) if attention is None else "masked",
        adapter_rank=raw.get("adapter_rank", 0),
        masked_attention=attention,
    )


def _kind(raw: dict[str, Any], path: Path) -> Kind:
    """Which decoder runs the model. Raises ModelCorrupt."""
    kind: Kind = raw.get("kind", "causal")
    if kind not in get_args(Kind):
        raise ModelCorrupt(f"{path}: kind is {kind!r}; known are {', '.join(get_args(Kind))}")
    if kind == "masked" and not raw.get("adapter_rank"):
        raise ModelCorrupt(f"{path}: a masked model needs an adapter_rank; export it again")
    return kind


def _granite_4_width(raw: dict[str, Any], path: Path) -> int:
    """Width of the feed-forward. Raises ModelCorrupt for a model with experts or Mamba layers."""
    kinds = {kind.removeprefix("full_") for kind in raw.get("layer_types") or raw["layers_block_type"]}
    if raw.get("num_local_experts") or kinds != {"attention"} or raw.get("position_embedding_type") != "rope":
        raise ModelCorrupt(f"{path}: Granite 4 is only supported without experts and Mamba layers; use a dense one")
    return int(raw["shared_intermediate_size"])


def rope_factors(config: Mapping[str, Any], width: int, base: float) -> tuple[float, ...]:
    """Divisors of the frequencies [width / 2] that a config.json asks for; empty for plain ones. Raises ModelError.

    The formula is `_compute_llama3_parameters` of transformers.
    """
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    if kind == "default":
        return ()
    if kind != "llama3":
        raise ModelError(f"rotary angles of kind {kind!r} are not supported; choose another model")
    factor, low, high = (float(scaling[name]) for name in ("factor", "low_freq_factor", "high_freq_factor"))
    turns = scaling["original_max_position_embeddings"] * base ** (-np.arange(0, width, 2) / width) / (2 * math.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return tuple((1 / ((1 - smooth) / factor + smooth)).tolist())


def base_of(folder: Path) -> Path:
    """The folder with a model's base weights and tokenizer: its own, or the one it names. Raises ModelCorrupt."""
    path = folder / "config.json"
    name = read_json(path).get("base") if path.is_file() else None
    if name is None:
        return folder
    if not isinstance(name, str) or Path(name).name != name:
        raise ModelCorrupt(f"{path}: base is {name!r}, which is no name of a folder beside it; fetch the model again")
    return folder.parent / name


def matrix_names(tensors: Tensors, number: int, matrix: str) -> list[str]:
    """The names of the checkpoint's matrices that make up one of a layer's fused matrices."""
    stem = f"model.layers.{number}."
    is_granite_4 = f"{stem}{GRANITE_4_MATRICES['down'][0]}.weight" in tensors.names
    return [f"{stem}{name}.weight" for name in (GRANITE_4_MATRICES if is_granite_4 else FUSED_MATRICES)[matrix]]


def layer_vectors(tensors: Tensors, config: ModelConfig, number: int) -> Iterator[tuple[VectorName, Floats]]:
    """A layer's norms, and the biases of its queries, keys and values in one. Raises ModelCorrupt."""
    stem, width = f"model.layers.{number}.", config.head_dim
    yield "attention_norm", tensors.floats(f"{stem}input_layernorm.weight", config.hidden_size)
    yield "feed_norm", tensors.floats(f"{stem}post_attention_layernorm.weight", config.hidden_size)
    if config.qk_norm:
        yield "query_norm", tensors.floats(f"{stem}self_attn.q_norm.weight", width)
        yield "key_norm", tensors.floats(f"{stem}self_attn.k_norm.weight", width)
    if config.attention_bias:
        heads = config.num_attention_heads, config.num_key_value_heads, config.num_key_value_heads
        named = zip(FUSED_MATRICES["qkv"], heads, strict=True)
        yield "bias", np.concatenate([tensors.floats(f"{stem}{name}.bias", each * width) for name, each in named])


def read_model(folder: Path) -> Tensors:
    """The tensors of the model itself. Raises ModelError."""
    gguf = gguf_of(folder)
    return StoredTensors(base_of(folder)) if gguf is None else GgufTensors(opened(gguf))


def reader_change(folder: Path) -> Tensors | None:
    """The low-rank change of the reader's matrices; None without the file. Raises ModelCorrupt."""
    base = base_of(folder)
    return StoredTensors(base, READER_FILE) if (base / READER_FILE).is_file() else None


def weight_bytes(folder: Path) -> int:
    """Bytes of a model's weight files, about what a forward pass reads; 0 if some are missing."""
    try:
        return sum(path.stat().st_size for path in stored_files(folder))
    except ModelError:
        return 0


def has_codes(folder: Path) -> bool:
    """Whether a model's file has the layers' matrices as a GPU holds them in eight bits. Raises ModelError."""
    if (gguf := gguf_of(folder)) is None:
        return False
    file = opened(gguf)
    matrices = [name for name, info in file.tensors.items() if name.startswith("blk.") and len(info.shape) > 1]
    return all(file.matrix(name).type is Q8_0 for name in matrices)


def stored_files(folder: Path) -> list[Path]:
    """A model's weight files. Raises ModelNotFound and ModelCorrupt."""
    gguf = gguf_of(folder)
    return [gguf] if gguf else weight_files(base_of(folder))


def has_adapter(folder: Path, config: ModelConfig) -> bool:
    """Whether the folder holds the adapter with which a masked model denoises."""
    return bool(config.adapter_rank) and any(folder.glob(ADAPTER_FILES))


def adapter_file(name: AdapterName) -> str:
    return f"{name}.adapter.safetensors"


def read_adapters(folder: Path, config: ModelConfig) -> dict[AdapterName, StoredTensors]:
    """The adapters of a model folder, for a model of this shape. Raises ModelCorrupt."""
    found = dict[AdapterName, StoredTensors]()
    for name in ADAPTERS:
        path = folder / adapter_file(name)
        if not path.is_file():
            continue
        found[name] = StoredTensors(folder, path.name)
        said = found[name].metadata
        if said.get("format") != ADAPTER_FORMAT:
            raise ModelCorrupt(f"{path} is no adapter of this version; delete it, or fetch the model again")
        if said.get("base") != base_shape(config):
            raise ModelCorrupt(f"{path} belongs to a model of another shape ({said.get('base')}); delete it")
    return found


def base_shape(config: ModelConfig) -> str:
    """What an adapter and its base must have in common, as text."""
    sizes = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    return json.dumps({size: getattr(config, size) for size in (*sizes, "vocab_size")})


def read_settings(folder: Path) -> dict[str, Any]:
    """Values fitted to the model on held-out text: settings.json; empty without it. Raises ModelCorrupt.

    `utility`: fields of `Utility`; `decoding`: fields of the options of its decoder, see `decoding.options`;
    `calibration`: rising [confidence, share that is right] pairs from [0, 0] to [1, 1]; `markers`: whether the model
    reads in its vocabulary's gap format, by default unless it was taught without markers.
    """
    path = folder / "settings.json"
    found: Any = read_json(path) if path.is_file() else {}
    if not isinstance(found, dict):
        raise ModelCorrupt(f"{path} is not valid (it is no JSON object); fetch the model again")
    return found


def check_values(folder: Path) -> list[Path]:
    """Read every value of a model's weight files, also its adapters', and return the files; takes seconds.

    Raises ModelCorrupt for a file that is damaged or holds values that are not finite.
    """
    config, gguf = read_config(folder), gguf_of(folder)
    if gguf is not None:
        files, stored = [gguf], [read_model(folder)]
    else:
        files = sorted({*weight_files(folder), *(path for path in folder.glob("*.safetensors") if path.is_file())})
        stored = [StoredTensors(folder, path.name) for path in files]
    for tensors in stored:
        for name in tensors.names:
            tensors.finite(name, tensors.matrix(name).floats())
    read_adapters(folder, config)
    return files
