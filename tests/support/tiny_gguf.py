"""Tiny GGUF files of random numbers, in the real format."""

import json
from pathlib import Path

import gguf
import numpy as np
from mercury_engine.models.decoder import TorchDecoder

from tests.support import tiny

FIELDS = {
    "embedding_length": 32,
    "feed_forward_length": 64,
    "block_count": 1,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
}

SHAPES = {
    "attn_q": (32, 32),
    "attn_k": (16, 32),
    "attn_v": (16, 32),
    "attn_output": (32, 32),
    "ffn_gate": (64, 32),
    "ffn_up": (64, 32),
    "ffn_down": (32, 64),
}

FIELD_NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def write(path: Path, kind: gguf.GGMLQuantizationType) -> dict[str, np.ndarray]:
    """A Qwen2 file with one layer and random matrices of a kind; their values as the file holds them."""
    rng = np.random.default_rng(0)
    vocabulary = tiny.tokenizer().get_vocab()
    by_id = sorted(vocabulary, key=vocabulary.__getitem__)[1:]  # without the start token, which is number 0
    made = gguf.GGUFWriter(path, "qwen2")
    for name, number in FIELDS.items():
        made.add_uint32(f"qwen2.{name}", number)
    made.add_float32("qwen2.rope.freq_base", 1e6)
    made.add_float32("qwen2.attention.layer_norm_rms_epsilon", 1e-6)
    _add_vocabulary(made, [*by_id, tiny.START, "[PAD]"], [*[1] * len(by_id), 3, 5])
    values = {}
    matrices = {f"blk.0.{name}.weight": shape for name, shape in SHAPES.items()}
    for name, shape in (matrices | {"token_embd.weight": (len(by_id) + 2, 32)}).items():
        packed = gguf.quants.quantize(0.3 * rng.standard_normal(shape, dtype=np.float32), kind)
        values[name] = gguf.quants.dequantize(packed, kind)
        made.add_tensor(name, packed, raw_dtype=kind)
    floats = {"output_norm.weight": 32, "blk.0.attn_norm.weight": 32, "blk.0.ffn_norm.weight": 32}
    biases = {"blk.0.attn_q.bias": 32, "blk.0.attn_k.bias": 16, "blk.0.attn_v.bias": 16}
    for name, size in (floats | biases).items():
        values[name] = rng.standard_normal(size, dtype=np.float32)
        made.add_tensor(name, values[name])
    finish(made)
    return values


def convert(
    path: Path,
    network: TorchDecoder,
    architecture: str,
    matrices: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.Q8_0,
    **metadata: object,
) -> Path:
    """A network as a file, the embedding of quantised ones in float16; metadata are added or replace values."""
    c = network.config
    values = {
        "embedding_length": c.hidden_size,
        "feed_forward_length": c.intermediate_size,
        "block_count": c.num_hidden_layers,
        "attention.head_count": c.num_attention_heads,
        "attention.head_count_kv": c.num_key_value_heads,
        "attention.key_length": c.head_dim,
        "attention.layer_norm_rms_epsilon": c.rms_norm_eps,
        "rope.freq_base": c.rope_theta,
    }
    made = gguf.GGUFWriter(path, architecture)
    by_id = sorted(tiny.tokenizer().get_vocab().items(), key=lambda entry: entry[1])
    names = [token for token, _ in by_id] + ["[PAD]"] * (c.vocab_size - len(by_id))
    kinds = [3, *[1] * (len(by_id) - 1), *[5] * (c.vocab_size - len(by_id))]
    given = {f"{architecture}.{name}": value for name, value in values.items()} | metadata
    _add_vocabulary(made, names, kinds, str(given.pop("tokenizer.ggml.model", "gpt2")))
    for name, value in given.items():
        _add_value(made, name, value)
    for name, tensor in tiny.state(network).items():
        field = _gguf_name(name)
        floats = (
            _interleaved(field, tensor.float().numpy(), network)
            if architecture in ("llama", "llada")
            else tensor.numpy()
        )
        kind = gguf.GGMLQuantizationType.F32 if floats.ndim == 1 else matrices
        if field == "token_embd.weight" and kind == gguf.GGMLQuantizationType.Q8_0:
            kind = gguf.GGMLQuantizationType.F16
        made.add_tensor(field, gguf.quants.quantize(floats, kind), raw_dtype=kind)
    if c.rope_factors:
        made.add_tensor("rope_freqs.weight", np.array(c.rope_factors, np.float32))
    finish(made)
    return path


def blocks(kind: gguf.GGMLQuantizationType, outputs: int, inputs: int) -> np.ndarray:
    """Bytes [outputs,bytes of a row] of random weights around zero; there is nothing that quantises to K types."""
    rng = np.random.default_rng(outputs)
    if not kind.name.endswith("_K"):
        return gguf.quants.quantize(0.3 * rng.standard_normal((outputs, inputs), dtype=np.float32), kind).view(np.uint8)
    weights, size = gguf.GGML_QUANT_SIZES[kind]
    made = rng.integers(0, 256, (outputs, inputs // weights, size), dtype=np.uint8)
    factors = 0.001 * rng.uniform(0.5, 1, (*made.shape[:2], 2)).astype(np.float16)
    factors[..., 1] *= 6  # of the low ends
    places = [(208, 0)] if kind.name == "Q6_K" else [(0, 0), (2, 1)]
    for at, factor in places:
        made[..., at : at + 2] = factors[..., factor, None].astype(np.float16).view(np.uint8)
    return made.reshape(outputs, -1)


def _add_vocabulary(made: gguf.GGUFWriter, tokens: list[str], kinds: list[int], model: str = "gpt2") -> None:
    made.add_tokenizer_model(model)
    made.add_tokenizer_pre("smollm")  # it splits digits, as `tiny.tokenizer` does
    made.add_token_list(tokens)
    made.add_token_types(kinds)
    made.add_token_merges([" ".join(pair) for pair in _merges()])


def _add_value(made: gguf.GGUFWriter, name: str, value: object) -> None:
    if isinstance(value, bool):
        made.add_bool(name, value)
    elif isinstance(value, str):
        made.add_string(name, value)
    elif isinstance(value, float):
        made.add_float32(name, value)
    elif isinstance(value, list):
        made.add_array(name, value)
    else:
        assert isinstance(value, int)
        made.add_uint32(name, value)


def finish(made: gguf.GGUFWriter) -> None:
    """Write what was added, and close the file."""
    made.write_header_to_file()
    made.write_kv_data_to_file()
    made.write_tensors_to_file()
    made.close()


def _gguf_name(name: str) -> str:
    """The name in the file of a checkpoint's tensor."""
    whole = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    stem, _, kind = name.rpartition(".")
    if stem in whole:
        return f"{whole[stem]}.{kind}"
    number, field = stem.removeprefix("model.layers.").split(".", 1)
    by_field = {checkpoint: mine for mine, checkpoint in FIELD_NAMES.items()}
    return f"blk.{number}.{by_field[field]}.{kind}"


def _interleaved(field: str, rows: np.ndarray, network: TorchDecoder) -> np.ndarray:
    """Queries and keys with the rotary halves of each head interleaved, as files of Llama have them."""
    heads = {"attn_q": network.config.num_attention_heads, "attn_k": network.config.num_key_value_heads}
    name = field.split(".")[-2]
    return (
        rows.reshape(heads[name], 2, -1, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape) if name in heads else rows
    )


def _merges() -> list[tuple[str, str]]:
    return [tuple(pair) for pair in json.loads(tiny.tokenizer().to_str())["model"]["merges"]]
