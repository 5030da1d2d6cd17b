"""Families of masked diffusion models with full attention: how a checkpoint is recognised, and what sets it apart.

Their layers are those of Qwen2, Qwen3 or Llama, with the same tensor names; only the mask of attention differs.
Sources: the repositories Open-dLLM, dllm (A2D), Dream, ml-diffucoder and DreamOn, and their published configurations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mercury_engine.errors import ModelCorrupt, ModelError
from mercury_engine.models import json_files
from mercury_engine.models.network import FullAttention


@dataclass(frozen=True, slots=True)
class MaskedFamily:
    """One family."""

    name: str
    model_types: Mapping[str, str]
    """Values of `model_type`, each with that of the decoder whose layers it has."""
    masks: tuple[str, ...]
    """Texts of the mask token, where the configuration has no `mask_token_id`."""
    shifted: bool
    expand: str = "<|expand|>"
    """The text of the token that turns a slot into two, if the vocabulary has it."""


FAMILIES = (
    MaskedFamily("Open-dCoder", {"qwen2": "qwen2"}, ("<M>",), shifted=True),
    MaskedFamily(
        "A2D", {"a2d-qwen2": "qwen2", "a2d-qwen3": "qwen3", "a2d-llama": "llama"}, ("<|mask|>",), shifted=False
    ),
    MaskedFamily("Dream", {"Dream": "qwen2"}, ("<|mask|>",), shifted=True),
)

REFUSED = {
    "CoDA": "its licence, CC BY-NC 4.0, allows no commercial use",
    "wedlm": "its licence excludes use in the EU",
    "sdar": "it decodes in blocks and sees no text after the gap",
    "sdar_moe": "it decodes in blocks and sees no text after the gap",
    "Fast_dLLM_Qwen": "it decodes in blocks and sees no text after the gap",
    "llada": "LLaDA's layers are not supported",
    "llada2_moe": "it is a mixture of experts",
}
"""Why models of other kinds do not load, by `model_type`."""


def read(raw: Mapping[str, Any], folder: Path) -> tuple[str, FullAttention] | None:
    """The decoder whose layers a configuration has, and its family's attention; None for other models.

    Raises ModelError for a model that is refused, ModelCorrupt where the mask token cannot be found.
    """
    kind = raw["model_type"]
    if kind in REFUSED:
        raise ModelError(f"{folder / 'config.json'}: a model of type {kind!r} is not run: {REFUSED[kind]}")
    family = next((each for each in FAMILIES if kind in each.model_types), None)
    if family is None:
        return None
    named = _added_tokens(folder, family, kind)
    mask = raw.get("mask_token_id", next((named[text] for text in family.masks if text in named), None))
    if mask is None and kind in ("qwen2", "llama"):  # the plain decoder, which has no mask
        return None
    if not isinstance(mask, int) or not 0 <= mask < raw["vocab_size"]:
        raise ModelCorrupt(
            f"{folder}: the mask token of {family.name} is {mask!r}; its config.json or tokenizer_config.json is not "
            "complete, fetch the model again"
        )
    expand = raw.get("expand_token_id", named.get(family.expand))
    delete = raw.get("eos_token_id") if expand is not None else None
    return family.model_types[kind], FullAttention(family.name, mask, family.shifted, expand, delete)


def _added_tokens(folder: Path, family: MaskedFamily, kind: str) -> dict[str, int]:
    """The tokens that the family added to its base's vocabulary, by text; a plain base has none of them."""
    wanted = {*family.masks, family.expand}
    path = folder / "tokenizer_config.json"
    added = json_files.read(path).get("added_tokens_decoder", {}) if path.is_file() else {}
    named = {entry["content"]: int(number) for number, entry in added.items() if entry.get("content") in wanted}
    if not named and kind != "qwen2" and (path := folder / "tokenizer.json").is_file():
        added = json_files.read(path).get("added_tokens", [])
        named = {entry["content"]: entry["id"] for entry in added if entry.get("content") in wanted}
    return named
