"""Tiny random model folders: real files in the real formats, small enough to load in every test."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from mercury_engine.api import Control, Fill, FillRequest, SlotView
from mercury_engine.models import decoder_weights
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.network import ModelConfig
from mercury_kernels.cpu import library
from mercury_lab.engine import Engine
from safetensors.torch import save_file
from tokenizers import Tokenizer

START = "<|endoftext|>"

CODE = Path(__file__).parents[1] / "data" / "code"
"""Source files to complete, a folder for each project."""

QWEN_MARKERS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>")
"""Markers of Qwen2.5-Coder's gap format, tokens 500 to 503 of a tiny model."""

WIDE = {"head_dim": 64, "intermediate_size": 64}
"""Changes that make a tiny model one that the C kernels run."""

needs_kernels = pytest.mark.skipif(library.built() is None, reason="no C kernels were built for this processor")

SAMPLE = (CODE / "library" / "shelves.py").read_text("utf-8")


def tokenizer(markers: Sequence[str] = ()) -> Tokenizer:
    """A byte-level BPE of 500 tokens for Python code; the start token is number 0, `markers` come behind the others."""
    made = Tokenizer.from_file(str(CODE.with_name("tiny_tokenizer.json")))
    made.add_special_tokens(list(markers))
    return made


def config(vocab_size: int = 500, rank: int = 0, **changes) -> ModelConfig:
    fields = {
        "vocab_size": vocab_size,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "rope_theta": 10_000.0,
        "rms_norm_eps": 1e-5,
        "kind": "masked" if rank else "causal",
        "adapter_rank": rank,
    }
    return ModelConfig(**(fields | changes))


def network(rank: int = 4, seed: int = 0, **changes) -> TorchDecoder:
    """Random weights large enough for every part to matter, the adapter's too."""
    torch.manual_seed(seed)
    made = TorchDecoder(config(rank=rank, **changes))
    size, markers = made.config.vocab_size, torch.empty(2, made.config.hidden_size)
    whole = [each for each in (made.embedding, made.head) if each is not None]
    parts = [("", each[:size]) for each in whole] + [("", markers)]
    for name, parameter in made.named_parameters():
        if name not in ("embedding", "head"):
            parts += [(name, part) for part in (parameter if "head_norms" in name else [parameter])]
    for name, part in parts:
        part.copy_(1 + 0.1 * torch.randn_like(part) if "norm" in name else 0.3 * torch.randn_like(part))
    for each in whole:
        each[size:] = markers[: len(each) - size]
    return made.eval()


def folder(path: Path, rank: int = 4, seed: int = 0, markers: Sequence[str] = (), **changes) -> Path:
    """A Mercury folder of a random network, a masked one; rank 0 makes it causal, `markers` give it a gap format."""
    path.mkdir(parents=True, exist_ok=True)
    made = network(rank, seed, **({"vocab_size": 500 + len(markers)} | changes))
    tokenizer(markers=markers).save(str(path / "tokenizer.json"))
    save_file(state(made), path / "model.safetensors")
    if rank:
        save_file(decoder_weights.adapter_tensors(made), path / "adapter.safetensors")
    fields = {name: getattr(made.config, name) for name in made.config.__slots__}
    (path / "config.json").write_text(json.dumps({"model_type": "mercury", **fields, "name": "tiny"}))
    return path


def state(made: TorchDecoder) -> dict[str, torch.Tensor]:
    """The reader's tensors under their checkpoint names."""
    c = made.config
    out = {"model.embed_tokens.weight": made.embedding.data[: c.vocab_size], "model.norm.weight": made.norm.data}
    heads = [c.num_attention_heads * c.head_dim, *[c.num_key_value_heads * c.head_dim] * 2]
    for number, layer in enumerate(made.layers):
        parts = {
            "input_layernorm": layer.attn_norm,
            "post_attention_layernorm": layer.ffn_norm,
            "self_attn.o_proj": layer.out.weight,
            "mlp.down_proj": layer.down.weight,
        }
        names = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
        parts |= dict(zip(names, layer.qkv.weight.split(heads), strict=True))
        parts |= dict(zip(("mlp.gate_proj", "mlp.up_proj"), layer.gate_up.weight.chunk(2), strict=True))
        if layer.head_norms is not None:
            parts |= dict(zip(("self_attn.q_norm", "self_attn.k_norm"), layer.head_norms, strict=True))
        out |= {f"model.layers.{number}.{name}.weight": t.data.clone() for name, t in parts.items()}
        if layer.qkv.bias is not None:
            biases = zip(names, layer.qkv.bias.data.split(heads), strict=True)
            out |= {f"model.layers.{number}.{name}.bias": t.clone() for name, t in biases}
    return out


def load(path: Path) -> Engine:
    return Engine.load(path, device="cpu", dtype=torch.float32)


def on_backend(path: Path, backend: str, **changes) -> Engine:
    """An engine of a causal model on torch, or on the C kernels where they are built."""
    if backend == "torch":
        return load(folder(path, rank=0, **changes))
    if library.built() is None:
        pytest.skip("no kernels")
    return Engine.load(folder(path, rank=0, **changes, **WIDE), device="cpu", backend="native", threads=2)


def watched(engine: Engine, request: FillRequest) -> tuple[Fill, list[tuple[SlotView, ...]]]:
    """The fill, and what was seen of it before and after its steps."""
    canvases: list[tuple[SlotView, ...]] = []
    return engine.fill(request, Control(on_step=canvases.append)), canvases
