"""A model folder as one of transformers, with a low-rank change that peft trains and the engine reads.

The engine fuses the matrices that read the same rows. Their changes share one `lora_A`, so that a fused matrix has one
change of the same rank.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mercury_engine.errors import RequestError
from mercury_engine.models import weights
from mercury_engine.models.decoder_weights import tensor_of
from mercury_engine.models.network import ModelConfig
from mercury_engine.models.weights import FUSED_MATRICES
from numpy.typing import NDArray
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

SHARED_FIELDS = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "head_dim", "rms_norm_eps", "tie_word_embeddings", "max_position_embeddings"),
)
"""Fields of a `ModelConfig` that transformers calls the same."""


def causal_model(folder: Path) -> PreTrainedModel:
    """A causal model of Llama's or Qwen's layers, in float32. Raises ModelError, and RequestError for any other."""
    config = weights.read_config(folder)
    scales = config.embedding_multiplier, config.residual_multiplier, config.logits_scaling
    if config.kind != "causal" or config.rope_factors or config.attention_multiplier or set(scales) != {1.0}:
        raise RequestError(f"{folder} is no causal model with the layers of Llama or Qwen; name another --base")
    if weights.reader_change(folder):
        raise RequestError(f"{folder} has a low-rank change already; name the model that it was trained from")
    made = _empty(config)
    stored, tied = weights.read_model(folder), {"lm_head.weight"} if config.tie_word_embeddings else set[str]()
    shapes = {name: each.shape for name, each in made.state_dict().items() if name not in tied}
    state = {name: tensor_of(stored.matrix(name)).float().reshape(shape) for name, shape in shapes.items()}
    made.load_state_dict(state, strict=not tied)
    return made.eval()


def _empty(config: ModelConfig) -> PreTrainedModel:
    fields = {name: getattr(config, name) for name in SHARED_FIELDS}
    fields |= {"rope_parameters": {"rope_type": "default", "rope_theta": config.rope_theta}, "use_cache": True}
    if config.qk_norm:
        return Qwen3ForCausalLM(Qwen3Config(**fields, attention_bias=config.attention_bias))
    return Qwen2ForCausalLM(Qwen2Config(**fields)) if config.attention_bias else LlamaForCausalLM(LlamaConfig(**fields))


def with_change(model: PreTrainedModel, rank: int) -> PeftModel:
    """The model with a change of every matrix of its layers; a fresh one changes nothing."""
    parts = [part.rpartition(".")[2] for names in FUSED_MATRICES.values() for part in names]
    changed = get_peft_model(model, LoraConfig(r=rank, lora_alpha=rank, target_modules=parts))
    for _, (first, *others) in _fused(changed):
        for other in others:
            other.lora_A["default"] = first.lora_A["default"]
    return changed


def factors(changed: PeftModel) -> dict[str, NDArray[np.float32]]:
    """The change as the engine names it: `layers.N.MATRIX.down` [rank,in] and `.up` [out,rank], float32."""
    found = dict[str, NDArray[np.float32]]()
    for name, parts in _fused(changed):
        up = torch.cat([part.lora_B["default"].weight for part in parts])
        found[f"{name}.down"] = parts[0].lora_A["default"].weight.detach().cpu().numpy()
        found[f"{name}.up"] = up.detach().cpu().numpy()
    return found


@torch.no_grad()
def put_factors(changed: PeftModel, stored: Mapping[str, NDArray[np.float32]]) -> None:
    """Start from a change that `factors` gave. Raises RequestError if it has another rank."""
    for name, parts in _fused(changed):
        down, up = (torch.from_numpy(np.array(stored[f"{name}.{half}"], np.float32)) for half in ("down", "up"))
        if down.shape != parts[0].lora_A["default"].weight.shape:
            raise RequestError(f"the change to begin with has rank {len(down)}; say --rank {len(down)}")
        parts[0].lora_A["default"].weight.copy_(down)
        sizes = [part.lora_B["default"].weight.shape[0] for part in parts]
        for part, rows in zip(parts, up.split(sizes), strict=True):
            part.lora_B["default"].weight.copy_(rows)


def _fused(changed: PeftModel) -> Iterator[tuple[str, list[Any]]]:
    """The engine's name of every fused matrix, and peft's modules of its parts."""
    model: Any = changed.get_base_model()
    for number, layer in enumerate(model.model.layers):
        for matrix, parts in FUSED_MATRICES.items():
            yield f"layers.{number}.{matrix}", [layer.get_submodule(part) for part in parts]
