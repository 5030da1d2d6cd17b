"""Read GGUF files of the Llama and Qwen2 families as Mercury's tensors and configuration.

Weights stay quantised in groups of 32 along the input dimension (see `mercury_engine.models.weights`): Q4_1, Q5_0 and
Q8_0 keep their exact values; types with finer scales (Q4_K, Q6_K) are rounded once to eight bits.
"""

from typing import Any

import numpy as np
from mercury_engine.errors import RequestError
from mercury_kernels.cpu.blocks import GROUP
from mercury_kernels.installation import install_command

try:
    from gguf import GGMLQuantizationType, ReaderTensor
    from gguf import GGUFReader as GGUFReader
    from gguf.quants import dequantize
except ModuleNotFoundError as error:
    raise RequestError(f"GGUF files need {error.name}: {install_command('training')}") from error

Array = np.ndarray[Any, np.dtype[Any]]

_TENSOR_NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}

ROWS_AT_ONCE = 4096
"""Rows that are rounded at a time: as floats, the whole vocabulary of a large model would take gigabytes."""

_SCALE_ONLY_TYPES = (GGMLQuantizationType.Q5_0, GGMLQuantizationType.Q8_0)
"""Types whose blocks are a float16 scale and integer codes: weight = code * scale."""


def checkpoint_tensors(reader: GGUFReader, keep: list[int] | None = None) -> dict[str, Array]:
    """All tensors under their checkpoint names; `keep` lists the vocabulary rows to keep, None for all.

    Input and output matrices are tied; if the file has both, the output's is used, which has the finer quantisation.
    """
    tensors = {t.name: t for t in reader.tensors}
    rows = _packed(tensors.get("output.weight", tensors["token_embd.weight"]))
    found = {f"model.embed_tokens.weight{part}": t if keep is None else t[keep] for part, t in rows.items()}
    found["model.norm.weight"] = _floats(tensors["output_norm.weight"])
    turned = {"attn_q": "attention.head_count", "attn_k": "attention.head_count_kv"}
    for name, tensor in tensors.items():
        if not name.startswith("blk."):
            continue
        _, number, field, kind = name.split(".")
        stem = f"model.layers.{number}.{_TENSOR_NAMES[field]}.{kind}"
        turns = kind == "weight" and field in turned and _family(reader) == "llama"
        for part, t in _packed(tensor).items():
            found[stem + part] = _uninterleaved(t, _field(reader, turned[field])) if turns else t
    return {name: np.ascontiguousarray(t) for name, t in found.items()}


def folder_config(reader: GGUFReader, vocab_size: int, name: str) -> dict[str, Any]:
    """The config.json of a Mercury folder with these weights."""
    heads, width = _field(reader, "attention.head_count"), _field(reader, "embedding_length")
    return {
        "model_type": "mercury",
        "name": name,
        "vocab_size": vocab_size,
        "hidden_size": width,
        "intermediate_size": _field(reader, "feed_forward_length"),
        "num_hidden_layers": _field(reader, "block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": _field(reader, "attention.head_count_kv"),
        "head_dim": width // heads,
        "rope_theta": _field(reader, "rope.freq_base"),
        "rms_norm_eps": float(f"{_field(reader, 'attention.layer_norm_rms_epsilon'):.4g}"),  # stored as float32
        "attention_bias": _family(reader) == "qwen2",
        "tie_word_embeddings": True,
    }


def vocabulary_of(reader: GGUFReader) -> tuple[list[str], list[str], list[int]]:
    """Tokens, merges and the kind of every token (1 text, 3 control, 4 user-defined, 5 unused)."""
    fields = (reader.fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges", "token_type"))
    tokens, merges, types = fields
    return [str(t) for t in tokens], [str(m) for m in merges], [int(kind) for kind in types]


def _family(reader: GGUFReader) -> str:
    return str(reader.fields["general.architecture"].contents())


def _field(reader: GGUFReader, name: str) -> Any:
    return reader.fields[f"{_family(reader)}.{name}"].contents()


def _uninterleaved(rows: Array, heads: int) -> Array:
    """The rows with each head's two rotary halves one after the other; GGUF interleaves them for Llama."""
    width = rows.shape[0] // heads
    return rows.reshape(heads, width // 2, 2, -1).swapaxes(1, 2).reshape(rows.shape)


def _packed(tensor: ReaderTensor) -> dict[str, Array]:
    """The tensor's parts by name suffix; rows are outputs."""
    if tensor.tensor_type == GGMLQuantizationType.F32:
        return {"": _floats(tensor)}
    if tensor.tensor_type == GGMLQuantizationType.Q4_1:
        return _q4(tensor)
    rows = int(tensor.shape[1])
    pieces = [_eight_bits(tensor, slice(first, first + ROWS_AT_ONCE)) for first in range(0, rows, ROWS_AT_ONCE)]
    codes, scales = zip(*pieces, strict=True)
    return {".q8": np.concatenate(codes), ".scale": np.concatenate(scales)}


def _eight_bits(tensor: ReaderTensor, rows: slice) -> tuple[Array, Array]:
    """Codes [out, in] and scales [out, in/32] of some rows."""
    values = dequantize(tensor.data[rows], tensor.tensor_type)
    grouped = values.reshape(len(values), -1, GROUP)
    if tensor.tensor_type in _SCALE_ONLY_TYPES:
        scale = _scales(tensor)[rows]
    else:
        scale = (np.abs(grouped).max(-1) / np.float32(127)).astype(np.float16)
    steps = np.where(scale == 0, np.float16(1), scale).astype(np.float32)[..., None]
    codes = np.rint(grouped / steps).clip(-127, 127).astype(np.int8)
    return codes.reshape(len(values), -1), scale


def _floats(tensor: ReaderTensor) -> Array:
    return np.array(tensor.data, dtype=np.float32)


def _blocks(tensor: ReaderTensor) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Bytes [out, in/32, bytes per block] of a type with groups of 32."""
    inputs, outputs = (int(n) for n in tensor.shape)
    return np.array(tensor.data, dtype=np.uint8).reshape(outputs, inputs // GROUP, -1)


def _scales(tensor: ReaderTensor) -> Array:
    return _blocks(tensor)[..., :2].copy().view(np.float16)[..., 0]


def _q4(tensor: ReaderTensor) -> dict[str, Array]:
    raw = _blocks(tensor)
    halves = raw[..., :4].copy().view(np.float16)
    codes = raw[..., 4:].reshape(len(raw), -1)
    return {".q4": codes, ".scale": halves[..., 0], ".low": halves[..., 1]}
