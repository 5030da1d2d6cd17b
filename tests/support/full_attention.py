"""Tiny random checkpoints of masked diffusion models with full attention, in their published layouts."""

import json
from pathlib import Path

import torch
import transformers
from tokenizers import AddedToken

from tests.support import tiny

TYPES = {
    "Open-dCoder": "qwen2",
    "A2D-qwen2": "a2d-qwen2",
    "A2D-qwen3": "a2d-qwen3",
    "Dream": "Dream",
    "DreamOn": "Dream",
}

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "bos_token_id": 0,
    "eos_token_id": 0,
}


def folder(path: Path, family: str, seed: int = 0, **changes: int) -> tuple[Path, transformers.PreTrainedModel]:
    """A checkpoint of the family, and the same weights in transformers, which sees as far as its mask lets it.

    `changes` replace sizes.
    """
    torch.manual_seed(seed)
    made = tiny.tokenizer()
    mask_text = "<M>" if family == "Open-dCoder" else "<|mask|>"
    made.add_special_tokens([AddedToken(text, special=True) for text in (mask_text, "<|expand|>")])
    vocabulary = made.get_vocab_size()
    common = SIZES | changes | {"vocab_size": vocabulary, "tie_word_embeddings": family not in ("Dream", "DreamOn")}
    if family == "A2D-qwen3":
        model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**common, head_dim=32))
    else:
        model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**common))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                parameter.copy_(0.2 * torch.randn_like(parameter))
    model.eval().save_pretrained(path)
    made.save(str(path / "tokenizer.json"))
    raw = json.loads((path / "config.json").read_text()) | {"model_type": TYPES[family], "rope_theta": 1e6}
    mask, expand = made.token_to_id(mask_text), made.token_to_id("<|expand|>")
    added = {str(mask): {"content": mask_text}}
    if family in ("Dream", "DreamOn"):
        raw["mask_token_id"] = mask
    if family == "DreamOn":
        added[str(expand)] = {"content": "<|expand|>"}
    (path / "config.json").write_text(json.dumps(raw))
    (path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    return path, model


def reference(model: transformers.PreTrainedModel, ids: list[int]) -> torch.Tensor:
    """Logits [T,V] of a text whose tokens all see each other."""
    everything = torch.zeros(1, 1, len(ids), len(ids))
    with torch.no_grad():
        return model(torch.tensor([ids]), attention_mask=everything).logits[0]
