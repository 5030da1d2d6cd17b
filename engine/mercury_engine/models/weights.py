"""Weights on disk: safetensors only, plain floats or packed; names as in the Hugging Face checkpoints.

Packed formats, both in groups of 32 inputs (the arithmetic of GGUF's Q4_1 and Q8_0):
  NAME.q4 uint8 [out, in/2] (low nibble first half of a group), NAME.scale and NAME.low float16 [out, in/32]:
      weight = code * scale + low
  NAME.q8 int8 [out, in], NAME.scale float16 [out, in/32]: weight = code * scale
"""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from mercury_kernels.cpu.layers import GROUP
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from mercury_engine.errors import ModelCorrupt, ModelNotFound
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.torch_network import Layer, TorchNetwork

READER_FILE = "reader.safetensors"
"""Optional file: what training changed in the reader, a low-rank product for every matrix."""

LOADER_THREADS = 2
"""Number of threads that unpack matrices, and for a CPU quantise them, while a model is loaded."""

FUSED_MATRICES = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "out": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}


def read_config(folder: Path) -> ModelConfig:
    """Parse config.json of a Llama, Qwen2 or Mercury folder. Raises ModelNotFound and ModelCorrupt."""
    path = folder / "config.json"
    if not path.is_file():
        raise ModelNotFound(f"no config.json in {folder}; set mercury.model to a model folder or a model name")
    try:
        raw = json.loads(path.read_text("utf-8"))
        return _parse_config(raw, path)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelCorrupt(f"{path} is not a model configuration ({error!r}); fetch the model again") from error


def _parse_config(raw: dict[str, Any], path: Path) -> ModelConfig:
    kind = raw["model_type"]
    if kind not in ("llama", "qwen2", "mercury"):
        raise ModelCorrupt(f"{path}: model_type {kind!r} is not supported; use a llama, qwen2 or mercury checkpoint")
    heads = raw["num_attention_heads"]
    if heads % (raw.get("num_key_value_heads") or heads):
        raise ModelCorrupt(f"{path}: {heads} query heads do not share {raw['num_key_value_heads']} key heads evenly")
    rope = raw.get("rope_parameters") or {}
    return ModelConfig(
        vocab_size=raw["vocab_size"],
        hidden_size=raw["hidden_size"],
        intermediate_size=raw["intermediate_size"],
        num_hidden_layers=raw["num_hidden_layers"],
        num_attention_heads=heads,
        num_key_value_heads=raw.get("num_key_value_heads") or heads,
        head_dim=raw.get("head_dim") or raw["hidden_size"] // heads,
        rope_theta=float(raw.get("rope_theta") or rope["rope_theta"]),
        rms_norm_eps=raw["rms_norm_eps"],
        attention_bias=kind == "qwen2" or bool(raw.get("attention_bias", False)),
        tie_word_embeddings=raw.get("tie_word_embeddings", True),
        name=raw.get("name", path.parent.name),
        adapter_rank=raw.get("adapter_rank", 0),
    )


def read_tensors(folder: Path, pattern: str = "model*.safetensors") -> dict[str, Tensor]:
    """All tensors of the folder's weight files, as stored. Raises ModelNotFound and ModelCorrupt."""
    files = sorted(folder.glob(pattern))
    if not files:
        raise ModelNotFound(f"no {pattern} in {folder}; only safetensors weights are loaded")
    state: dict[str, Tensor] = {}
    for path in files:
        try:
            with safe_open(path, framework="pt") as file:
                state.update({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        except (SafetensorError, OSError, ValueError) as error:
            raise ModelCorrupt(f"{path} cannot be read ({error}); it is damaged: fetch or export it again") from error
    return state


def load(folder: Path, dtype: torch.dtype, device: torch.device) -> TorchNetwork:
    """The network of a model folder: the reader, with the writer's adapter if the folder holds one."""
    config = read_config(folder)
    network = _unfilled(config, dtype)
    fill_reader(network, folder)
    if config.adapter_rank:
        fill_adapter(network, read_tensors(folder, "adapter*.safetensors"), folder)
    return network.to(device)


def _unfilled(config: ModelConfig, dtype: torch.dtype) -> TorchNetwork:
    """A network to copy weights into. Allocating it in the right dtype saves a second over converting it."""
    network = TorchNetwork(config)
    for parameter in network.parameters():
        parameter.data = torch.empty_like(parameter, dtype=dtype)
    network.markers.data.zero_()  # no file holds the markers of a plain reader
    return network


def fill_reader(network: TorchNetwork, folder: Path) -> None:
    """Copy the folder's weights into the network, with the change from `reader.safetensors` if there is one."""
    change = read_tensors(folder, READER_FILE) if (folder / READER_FILE).is_file() else {}
    fill(network, read_tensors(folder), folder, change)


def low_rank(change: dict[str, Tensor], name: str, shape: tuple[int, int], path: Path) -> tuple[Tensor, Tensor]:
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


def fill(
    network: TorchNetwork, state: dict[str, Tensor], folder: Path, change: dict[str, Tensor] | None = None
) -> None:
    """Copy checkpoint tensors into the network, matrices with their low-rank change; every shape is checked."""

    @torch.no_grad()  # here, because the mode is per thread
    def put(target: Tensor, *names: str, changed_by: str = "") -> None:
        product = None
        if change and changed_by:
            product = low_rank(change, changed_by, (target.shape[0], target.shape[1]), folder / READER_FILE)
        _copy(target, joined(state, names, folder, product), " + ".join(names), folder)

    put(network.embedding, "model.embed_tokens.weight")
    put(network.norm, "model.norm.weight")
    if network.head is not None:
        put(network.head, "lm_head.weight")

    def put_layer(number: int) -> None:
        layer, stem = network.layers[number], f"model.layers.{number}."
        assert isinstance(layer, Layer)
        put(layer.attn_norm, stem + "input_layernorm.weight")
        put(layer.ffn_norm, stem + "post_attention_layernorm.weight")
        for matrix, names in FUSED_MATRICES.items():
            linear = getattr(layer, matrix)
            put(linear.weight, *(f"{stem}{name}.weight" for name in names), changed_by=f"layers.{number}.{matrix}")
            if linear.bias is not None:
                put(linear.bias, *(f"{stem}{name}.bias" for name in names))

    with ThreadPoolExecutor(LOADER_THREADS) as pool:
        list(pool.map(put_layer, range(len(network.layers))))


@torch.no_grad()
def fill_adapter(network: TorchNetwork, state: dict[str, Tensor], folder: Path) -> None:
    """Copy the writer's tensors (named like the network's own parameters) into the network.

    Without a length head in the adapter the network has none.
    """
    if "length" not in state:
        network.length = None
    for name, parameter in adapter_parameters(network).items():
        parameter.copy_(adapter_tensor(state, name, parameter.shape, folder))


def adapter_tensor(state: dict[str, Tensor], name: str, shape: Sequence[int], folder: Path) -> Tensor:
    """One of the writer's tensors, checked. Raises ModelCorrupt."""
    if name not in state:
        raise ModelCorrupt(f"adapter in {folder} lacks {name}; export it again")
    return checked(state[name], shape, name, folder)


@torch.no_grad()
def merged_writer(network: TorchNetwork) -> TorchNetwork:
    """The writer as a separate network with the adapter added to its matrices; norms and embedding are shared.

    The adapter is taken out of the given network.
    """
    config = network.config
    with torch.device("meta"):
        writer = TorchNetwork(replace(config, adapter_rank=0))
    writer.embedding, writer.head, writer.norm = network.embedding, network.head, network.norm
    writer.markers = nn.Parameter(network.markers.to(network.embedding.dtype), requires_grad=False)
    if network.length is not None:
        writer.length = nn.Parameter(network.length.to(network.embedding.dtype), requires_grad=False)
    for mine, theirs in zip(writer.layers, network.layers, strict=True):
        mine.attn_norm, mine.ffn_norm = theirs.attn_norm, theirs.ffn_norm
        for matrix in FUSED_MATRICES:
            linear, source = getattr(mine, matrix), getattr(theirs, matrix)
            added = source.weight.float() + source.up.float() @ source.down.float()
            linear.weight = nn.Parameter(added.to(source.weight.dtype), requires_grad=False)
            linear.bias = source.bias
            source.up = source.down = None
    return writer


def adapter_parameters(network: TorchNetwork) -> dict[str, Tensor]:
    """The parameters that training changes and `adapter.safetensors` holds, by name."""
    return {name: p for name, p in network.named_parameters() if p.requires_grad}


def _copy(target: Tensor, source: Tensor, name: str, folder: Path) -> None:
    target.copy_(checked(source, target.shape, name, folder))


def checked(source: Tensor, shape: Sequence[int], name: str, folder: Path) -> Tensor:
    """Return the tensor if it has this shape and all its values are finite. Raises ModelCorrupt."""
    if tuple(source.shape) != tuple(shape):
        raise ModelCorrupt(
            f"{name} in {folder} has shape {list(source.shape)}, config.json asks for {list(shape)}; "
            "the files do not belong together"
        )
    if not _is_finite(source):
        raise ModelCorrupt(f"{name} in {folder} holds values that are not finite; fetch or export the model again")
    return source


def _is_finite(values: Tensor) -> bool:
    """Whether all values are finite. A finite sum proves it thirty times as fast as looking at each value."""
    return bool(torch.isfinite(values.sum())) or bool(torch.isfinite(values).all())


def joined(
    state: dict[str, Tensor], names: Sequence[str], folder: Path, product: tuple[Tensor, Tensor] | None = None
) -> Tensor:
    """Tensors concatenated along the outputs, as floats, with a low-rank change if there is one (see `low_rank`)."""
    whole = torch.cat([unpack(state, name, folder) for name in names])
    if product is None:
        return whole
    down, up = product
    return whole.float() + up.float() @ down.float()


def unpack(state: dict[str, Tensor], name: str, folder: Path) -> Tensor:
    """The tensor as floats, from any stored format. Raises ModelCorrupt."""
    try:
        if name in state:
            return state[name]
        if f"{name}.q4" in state:
            return unpack_q4(state[f"{name}.q4"], state[f"{name}.scale"], state[f"{name}.low"])
        return unpack_q8(state[f"{name}.q8"], state[f"{name}.scale"])
    except (KeyError, RuntimeError) as error:
        raise ModelCorrupt(f"{name} in {folder} is missing or misshapen ({error}); fetch the model again") from error


def unpack_q4(codes: Tensor, scale: Tensor, low: Tensor) -> Tensor:
    """[out, in/2] uint8, [out, in/32], [out, in/32] to [out, in] float32."""
    outputs, groups = scale.shape
    packed = codes.view(outputs, groups, GROUP // 2)
    nibbles = torch.cat((packed & 15, packed >> 4), -1).float()
    return nibbles.mul_(scale.float()[..., None]).add_(low.float()[..., None]).flatten(1)


def unpack_q8(codes: Tensor, scale: Tensor) -> Tensor:
    """[out, in] int8, [out, in/32] to [out, in] float32."""
    outputs, groups = scale.shape
    return codes.view(outputs, groups, GROUP).float().mul_(scale.float()[..., None]).flatten(1)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Values fitted on held-out text for one model: `settings.json`, optional."""

    gate: float = 0.0
    """Confidence, before calibration, below which a fill is not shown."""
    rule: dict[str, Any] = field(default_factory=dict)
    calibration: list[list[float]] = field(default_factory=list)
    """Rising [confidence, share that is right] pairs from [0, 0] to [1, 1], for interpolation."""


def read_settings(folder: Path) -> ModelSettings:
    """The folder's fitted settings, or the defaults. Raises ModelCorrupt."""
    path = folder / "settings.json"
    if not path.is_file():
        return ModelSettings()
    try:
        return ModelSettings(**json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise ModelCorrupt(f"{path} is not valid ({error}); fetch the model again") from error
