"""Tiny GGUF files of random numbers, in the real format."""

import json
from pathlib import Path

import gguf
import numpy as np

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
    made.add_token_list([*by_id, tiny.START, "[PAD]"])
    made.add_token_types([*[1] * len(by_id), 3, 5])
    made.add_token_merges([" ".join(pair) for pair in _merges()])
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
    made.write_header_to_file()
    made.write_kv_data_to_file()
    made.write_tensors_to_file()
    made.close()
    return values


def _merges() -> list[tuple[str, str]]:
    return [tuple(pair) for pair in json.loads(tiny.tokenizer().to_str())["model"]["merges"]]
