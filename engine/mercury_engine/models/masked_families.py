"""Families of masked diffusion models without an adapter: how checkpoints are recognised, and how they differ.

`masked_families.toml` lists them. Their layers are those of Qwen2, Qwen3 or Llama, with the same tensor names; only the
attention mask differs. Sources: the repositories Open-dLLM, dllm (A2D), Dream, ml-diffucoder, DreamOn, SDAR and
Stable-DiffCoder, the code in that of Fast-dLLM v2, and their published configurations; for GGUF files the converters of
llama.cpp.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from mercury_engine.errors import ModelCorrupt, ModelError
from mercury_engine.model_folders import read_json
from mercury_engine.models.network import MaskedAttention

MOST_BLOCK = 1024
"""Largest block that a configuration may ask for, in tokens; published ones have 4 to 64."""

EXPAND = "<|expand|>"
"""The text of the token that turns a slot into two, if the vocabulary has it."""


@dataclass(frozen=True, slots=True)
class MaskedFamily:
    """One family."""

    name: str
    model_types: Mapping[str, str]
    """Values of `model_type`, each with that of the decoder whose layers it has."""
    masks: Sequence[str]
    """Texts of the mask token, if the configuration has no `mask_token_id`."""
    shifted: bool
    architecture: str | None = None
    """Its entry in `architectures`, if `model_type` is a plain decoder's."""
    named: str | None = None
    """Part of the folder's name, for models whose configuration does not mention blocks."""
    block: int | None = None
    """Default tokens of a block; None: all rows see each other."""
    block_field: str = "block_size"
    part: int | None = None
    """See `MaskedAttention.part`."""
    threshold: float = 0.9
    """See `MaskedAttention.threshold`."""


_READ = tomllib.loads(resources.files(__package__).joinpath("masked_families.toml").read_text("utf-8"))

FAMILIES = tuple(MaskedFamily(**entry) for entry in _READ["families"])

REFUSED = {entry["model_type"]: entry["why"] for entry in _READ["refused"]}
"""Why models of other kinds do not load, by `model_type`."""


def why_refused(name: str) -> str | None:
    """Why a model of this name does not load; None if nothing is known against it."""
    known = ((entry["name"], entry["why"]) for entry in _READ["refused"] if "name" in entry)
    return next((why for begin, why in known if name.lower().startswith(begin)), None)


def read(raw: Mapping[str, Any], folder: Path) -> tuple[str, MaskedAttention] | None:
    """The decoder whose layers a configuration has, and its family's attention; None for other models.

    Raises ModelError for a model that is refused, ModelCorrupt where the mask token cannot be found.
    """
    kind = raw["model_type"]
    if kind in REFUSED:
        raise ModelError(f"{folder / 'config.json'}: a model of type {kind!r} is not run: {REFUSED[kind]}")
    if (family := next((each for each in FAMILIES if _is_of(each, raw, folder)), None)) is None:
        return None
    named = _added_tokens(folder, family, kind) if family.masks else {}
    mask = raw.get("mask_token_id", next((named[text] for text in family.masks if text in named), None))
    if mask is None and (kind == "qwen2" or not family.masks):  # the plain decoder, which has no mask
        return None
    if not isinstance(mask, int) or not 0 <= mask < raw["vocab_size"]:
        raise ModelCorrupt(
            f"{folder}: the mask token of {family.name} is {mask!r}; its config.json or tokenizer_config.json is not "
            "complete, fetch the model again"
        )
    expand = raw.get("expand_token_id", named.get(EXPAND))
    delete = raw.get("eos_token_id") if expand is not None else None
    block = None if family.block is None else raw.get(family.block_field, family.block)
    if block is not None and (type(block) is not int or not 1 <= block <= MOST_BLOCK):
        raise ModelCorrupt(f"{folder / 'config.json'}: {family.block_field} is {block!r}; fetch the model again")
    found = family.name, mask, family.shifted, expand, delete, block, family.part, family.threshold
    return family.model_types[kind], MaskedAttention(*found)


def _is_of(family: MaskedFamily, raw: Mapping[str, Any], folder: Path) -> bool:
    """Whether a model is of a family, by its type, by its architecture where that counts, and by its name or block."""
    names = " ".join((folder.name, folder.resolve().name)).lower()
    is_named = family.named is None or family.named in names or family.block_field in raw
    architectures = [None, *(raw.get("architectures") or ())]
    return raw["model_type"] in family.model_types and family.architecture in architectures and is_named


def _added_tokens(folder: Path, family: MaskedFamily, kind: str) -> dict[str, int]:
    """The tokens that the family added to its base's vocabulary, by text; a plain base has none of them."""
    wanted = {*family.masks, EXPAND}
    path = folder / "tokenizer_config.json"
    added = read_json(path).get("added_tokens_decoder", {}) if path.is_file() else {}
    named = {entry["content"]: int(number) for number, entry in added.items() if entry.get("content") in wanted}
    if not named and kind != "qwen2" and (path := folder / "tokenizer.json").is_file():
        added = read_json(path).get("added_tokens", [])
        named = {entry["content"]: entry["id"] for entry in added if entry.get("content") in wanted}
    return named
