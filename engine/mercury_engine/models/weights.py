"""Weights on disk: safetensors or a GGUF file; names as in the Hugging Face checkpoints.

A model is a path: a folder, or a GGUF file, see `gguf`. Tensors in safetensors are plain floats or packed. Packed
formats, both in groups of 32 inputs (the arithmetic of GGUF's Q4_1 and Q8_0):
  NAME.q4 uint8 [out, in/2] (low nibble first half of a group), NAME.scale and NAME.low float16 [out, in/32]:
      weight = code * scale + low
  NAME.q8 int8 [out, in], NAME.scale float16 [out, in/32]: weight = code * scale
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

import numpy as np
from mercury_kernels.cpu.blocks import GROUP, BlockMatrix
from numpy.typing import NDArray

from mercury_engine.errors import ModelCorrupt, ModelError, ModelNotFound
from mercury_engine.models import json_files, limits, masked_families
from mercury_engine.models.arrays import FloatArray
from mercury_engine.models.gguf.checkpoint import GgufTensors, config_of, is_eight_bit
from mercury_engine.models.gguf.file import gguf_of, opened
from mercury_engine.models.network import CONTEXT_LENGTH, Kind, ModelConfig
from mercury_engine.models.rotary import factors_of
from mercury_engine.models.safetensors_files import StoredTensors, weight_files

READER_FILE = "reader.safetensors"
"""Optional: a trained low-rank change of every matrix of the reader."""

ADAPTER_FILES = "adapter*.safetensors"
"""The adapter with which a masked model denoises."""

LOADER_THREADS = 2
"""They unpack matrices, and quantise them for a CPU, while a model is loaded."""

FAMILIES = ("granite", "granitemoehybrid", "llama", "mercury", "qwen2", "qwen3")
"""Supported values of `model_type`; `granitemoehybrid` is Granite 4, without experts and with attention only."""

HEAD_NORMS = ("self_attn.q_norm", "self_attn.k_norm")

FUSED_MATRICES = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "out": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}

GRANITE_4_MATRICES = FUSED_MATRICES | {"gate_up": ("shared_mlp.input_linear",), "down": ("shared_mlp.output_linear",)}

StoredArray = NDArray[Any]
"""A tensor as stored: floats (bfloat16 is `ml_dtypes.bfloat16`) or codes."""

State = Mapping[str, StoredArray | BlockMatrix]
"""A model's tensors by name; the matrices of a GGUF file are blocks."""


def read_config(folder: Path) -> ModelConfig:
    """The configuration of a model of one of FAMILIES: its config.json or its GGUF metadata. Raises ModelError."""
    if (gguf := gguf_of(folder)) is not None:
        return _within_limits(_config_of_gguf(gguf), gguf)
    path = folder / "config.json"
    if not path.is_file():
        raise ModelNotFound(f"no config.json in {folder}; set mercury.model to a model folder or a model name")
    try:
        config = _parse_config(json_files.read(path), path)
    except (ArithmeticError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelCorrupt(f"{path} is not a model configuration ({error!r}); fetch the model again") from error
    return _within_limits(config, path)


def _config_of_gguf(path: Path) -> ModelConfig:
    """The configuration of a GGUF file. Raises ModelError."""
    try:
        return config_of(opened(path))
    except (ArithmeticError, ValueError, TypeError) as error:
        raise ModelCorrupt(f"the metadata of {path} make no model ({error!r}); fetch it again") from error


def _within_limits(config: ModelConfig, path: Path) -> ModelConfig:
    """The configuration. Raises ModelCorrupt if it asks for what no model has."""
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
    if heads % (raw.get("num_key_value_heads") or heads):
        raise ModelCorrupt(f"{path}: {heads} query heads do not share {raw['num_key_value_heads']} key heads evenly")
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
        rope_factors=factors_of(raw, width, theta),
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


def base_of(folder: Path) -> Path:
    """The folder with a model's base weights and tokenizer: its own, or the one it names. Raises ModelCorrupt."""
    path = folder / "config.json"
    name = json_files.read(path).get("base") if path.is_file() else None
    if name is None:
        return folder
    if not isinstance(name, str) or Path(name).name != name:
        raise ModelCorrupt(f"{path}: base is {name!r}, which is no name of a folder beside it; fetch the model again")
    return folder.parent / name


def matrix_names(state: State, number: int, matrix: str) -> list[str]:
    """The names of the checkpoint's matrices that make up one of a layer's fused matrices."""
    stem = f"model.layers.{number}."
    is_granite_4 = f"{stem}{GRANITE_4_MATRICES['down'][0]}.weight" in state
    return [f"{stem}{name}.weight" for name in (GRANITE_4_MATRICES if is_granite_4 else FUSED_MATRICES)[matrix]]


def read_model(folder: Path) -> State:
    """The tensors of the model itself. Raises ModelError."""
    gguf = gguf_of(folder)
    return StoredTensors(base_of(folder)) if gguf is None else GgufTensors(opened(gguf))


def reader_change(folder: Path) -> Mapping[str, StoredArray]:
    """The tensors of `reader.safetensors`; empty without the file. Raises ModelCorrupt."""
    base = base_of(folder)
    return StoredTensors(base, READER_FILE) if (base / READER_FILE).is_file() else {}


def weight_bytes(folder: Path) -> int:
    """Bytes of a model's weight files, about what a forward pass reads; 0 if some are missing."""
    try:
        return sum(path.stat().st_size for path in stored_files(folder))
    except ModelError:
        return 0


def has_codes(folder: Path) -> bool:
    """Whether a model's file has the layers' matrices as a GPU holds them in eight bits. Raises ModelError."""
    gguf = gguf_of(folder)
    return gguf is not None and is_eight_bit(opened(gguf))


def stored_files(folder: Path) -> list[Path]:
    """A model's weight files. Raises ModelNotFound and ModelCorrupt."""
    gguf = gguf_of(folder)
    return [gguf] if gguf else weight_files(base_of(folder))


def has_adapter(folder: Path, config: ModelConfig) -> bool:
    """Whether the folder holds the adapter with which a masked model denoises."""
    return bool(config.adapter_rank) and any(folder.glob(ADAPTER_FILES))


def low_rank(
    change: Mapping[str, StoredArray], name: str, shape: tuple[int, int], path: Path
) -> tuple[StoredArray, StoredArray]:
    """The two halves [rank, in] and [out, rank] of a change to a matrix [out, in], from the file at the path."""
    if f"{name}.up" not in change or f"{name}.down" not in change:
        raise ModelCorrupt(f"{path} lacks {name}; export it again")
    down, up = change[f"{name}.down"], change[f"{name}.up"]
    if up.ndim != 2 or down.ndim != 2 or up.shape[1] != len(down) or (len(up), down.shape[1]) != shape:
        raise ModelCorrupt(
            f"{name} in {path} has shapes {list(up.shape)} and {list(down.shape)}, the matrix "
            f"{list(shape)}; the files do not belong together"
        )
    return checked(down, down.shape, f"{name}.down", path), checked(up, up.shape, f"{name}.up", path)


def adapter_tensor(state: Mapping[str, StoredArray], name: str, shape: Sequence[int], folder: Path) -> StoredArray:
    """One of the writer's tensors, checked. Raises ModelCorrupt."""
    if name not in state:
        raise ModelCorrupt(f"adapter in {folder} lacks {name}; export it again")
    return checked(state[name], shape, name, folder)


def checked(source: StoredArray, shape: Sequence[int], name: str, folder: Path) -> StoredArray:
    """Return the tensor if it has this shape and all its values are finite. Raises ModelCorrupt."""
    if tuple(source.shape) != tuple(shape):
        raise ModelCorrupt(
            f"{name} in {folder} has shape {list(source.shape)}, config.json asks for {list(shape)}; "
            "the files do not belong together"
        )
    if not _is_finite(source):
        raise ModelCorrupt(f"{name} in {folder} holds values that are not finite; fetch or export the model again")
    return source


def _is_finite(values: StoredArray) -> bool:
    """Whether all values are finite. A finite sum proves it, and is faster than a look at each value."""
    if values.dtype.kind in "iub":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum(dtype=np.float32))) or bool(np.isfinite(values).all())


def joined(
    state: State, names: Sequence[str], folder: Path, product: tuple[StoredArray, StoredArray] | None = None
) -> StoredArray:
    """Tensors concatenated along the outputs, as floats, with a low-rank change if there is one (see `low_rank`)."""
    parts = [unpack(state, name, folder) for name in names]
    try:
        whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    except ValueError as error:
        raise ModelCorrupt(f"{' and '.join(names)} in {folder} differ in width ({error}); fetch it again") from error
    if product is None:
        return whole
    down, up = (half.astype(np.float32) for half in product)
    return whole.astype(np.float32) + up @ down


def unpack(state: State, name: str, folder: Path) -> StoredArray:
    """The tensor as floats, from any stored format. Raises ModelCorrupt."""
    try:
        if name in state:
            found = state[name]
            return found.floats() if isinstance(found, BlockMatrix) else found
        if f"{name}.q4" in state:
            return unpack_q4(*(array(state, f"{name}.{part}") for part in ("q4", "scale", "low")))
        return unpack_q8(*(array(state, f"{name}.{part}") for part in ("q8", "scale")))
    except (KeyError, ValueError) as error:
        raise ModelCorrupt(f"{name} in {folder} is missing or misshapen ({error}); fetch the model again") from error


def array(state: State, name: str) -> StoredArray:
    """A tensor that is no block matrix, as none in safetensors is. Raises KeyError."""
    found = state[name]
    assert not isinstance(found, BlockMatrix)
    return found


def unpack_q4(codes: StoredArray, scale: StoredArray, low: StoredArray) -> FloatArray:
    """[out, in/2] uint8, [out, in/32], [out, in/32] to [out, in] float32."""
    outputs, groups = scale.shape
    halves = codes.reshape(outputs, groups, GROUP // 2)
    floats = np.concatenate((halves & 15, halves >> 4), -1).astype(np.float32)
    floats *= scale.astype(np.float32)[..., None]
    floats += low.astype(np.float32)[..., None]
    return floats.reshape(outputs, groups * GROUP)


def unpack_q8(codes: StoredArray, scale: StoredArray) -> FloatArray:
    """[out, in] int8, [out, in/32] to [out, in] float32."""
    outputs, groups = scale.shape
    floats = codes.reshape(outputs, groups, GROUP).astype(np.float32)
    floats *= scale.astype(np.float32)[..., None]
    return floats.reshape(outputs, groups * GROUP)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Values fitted to one model on held-out text: `settings.json`, optional."""

    utility: dict[str, float] = field(default_factory=dict)
    """Fields of `Utility`: when a fill is worth showing unasked."""
    decoding: dict[str, Any] = field(default_factory=dict)
    """Fields of the options of its decoder, see `decoding.options`."""
    calibration: list[list[float]] = field(default_factory=list)
    """Rising [confidence, share that is right] pairs from [0, 0] to [1, 1], for interpolation."""
    markers: bool | None = None
    """Whether the model reads in its vocabulary's gap format; None: yes, unless it was taught without markers."""


def read_settings(folder: Path) -> ModelSettings:
    """The folder's fitted settings, or the defaults; those of other versions are left out. Raises ModelCorrupt."""
    path = folder / "settings.json"
    if not path.is_file():
        return ModelSettings()
    known = {each.name for each in fields(ModelSettings)}
    try:
        return ModelSettings(**{name: value for name, value in json_files.read(path).items() if name in known})
    except (TypeError, AttributeError) as error:
        raise ModelCorrupt(f"{path} is not valid ({error}); fetch the model again") from error
