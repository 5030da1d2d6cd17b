"""Tiny random checkpoints of masked diffusion models without an adapter, in their published layouts."""

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
    "A2D-llama": "a2d-llama",
    "A2D-bd3lm": "a2d-qwen2",
    "Dream": "Dream",
    "DreamOn": "Dream",
    "SDAR": "sdar",
    "Fast-dLLM v2": "Fast_dLLM_Qwen",
    "Stable-DiffCoder": "llama",
}
"""`model_type` by family; a folder of A2D-bd3lm is known by its name, which has to contain "bd3lm"."""

BLOCKS = {"A2D-bd3lm": 32, "SDAR": 4, "Fast-dLLM v2": 32, "Stable-DiffCoder": 4}
"""Tokens of a block, of the families that decode in blocks."""

FULL_ATTENTION = [family for family in TYPES if family not in BLOCKS]

LAYERS = {"a2d-qwen3": "Qwen3", "sdar": "Qwen3", "a2d-llama": "Llama", "llama": "Llama"}
"""What transformers calls the layers, by `model_type`; Qwen2 where nothing stands here."""

MASKS = {"Open-dCoder": "<M>", "SDAR": "<|MASK|>", "Fast-dLLM v2": "|<MASK>|", "Stable-DiffCoder": "<[MASK_TOKEN]>"}
"""The mask token's text; <|mask|> where nothing stands here."""

UNTIED = ("Dream", "DreamOn", "Stable-DiffCoder")

MORE_FIELDS = {
    "SDAR": {"architectures": ["SDARForCausalLM"], "block_size": 4},
    "Fast-dLLM v2": {"architectures": ["Fast_dLLM_QwenForCausalLM"], "bd_size": 32},
    "Stable-DiffCoder": {"architectures": ["StableDiffcoderForCausalLM"]},
}
"""What the configuration says beside the shape."""

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
    mask_text = MASKS.get(family, "<|mask|>")
    made.add_special_tokens([AddedToken(text, special=True) for text in (mask_text, "<|expand|>")])
    vocabulary = made.get_vocab_size()
    common = SIZES | changes | {"vocab_size": vocabulary, "tie_word_embeddings": family not in UNTIED}
    layers = LAYERS.get(TYPES[family], "Qwen2")
    width = {"head_dim": 32} if layers == "Qwen3" else {}
    config = getattr(transformers, f"{layers}Config")(**common, **width)
    model = getattr(transformers, f"{layers}ForCausalLM")(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                parameter.copy_(0.2 * torch.randn_like(parameter))
    model.eval().save_pretrained(path)
    made.save(str(path / "tokenizer.json"))
    raw = json.loads((path / "config.json").read_text()) | {"model_type": TYPES[family], "rope_theta": 1e6}
    raw |= MORE_FIELDS.get(family, {})
    mask, expand = made.token_to_id(mask_text), made.token_to_id("<|expand|>")
    added = {str(mask): {"content": mask_text}}
    if family in ("Dream", "DreamOn"):
        raw["mask_token_id"] = mask
    if family == "DreamOn":
        added[str(expand)] = {"content": "<|expand|>"}
    (path / "config.json").write_text(json.dumps(raw))
    (path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    return path, model


def reference(model: transformers.PreTrainedModel, ids: list[int], block: int | None = None) -> torch.Tensor:
    """Logits [T,V] of a text whose tokens all see each other, or those of their block and of earlier ones."""
    number_T = torch.arange(len(ids)) // (block or len(ids))
    later = number_T[:, None] < number_T[None, :]
    mask = torch.zeros(1, 1, len(ids), len(ids)).masked_fill(later, float("-inf"))
    with torch.no_grad():
        return model(torch.tensor([ids]), attention_mask=mask).logits[0]
