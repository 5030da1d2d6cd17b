"""Write a model folder from a base and a run: `python -m mercury_lab.training export --base --run --out`.

A reader run gives the base for a writer run; a writer run gives a model, and so does one of `denoiser`. A run of
`adapt` gives an adapter's file, to be put beside the base's GGUF file or into its folder.
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from mercury_engine.errors import ModelCorrupt, ModelNotFound
from mercury_engine.models import adapters, weights
from mercury_engine.models.adapters import AdapterName
from mercury_engine.models.arrays import bfloat16
from safetensors.numpy import save_file as save_packed
from safetensors.torch import save_file

from mercury_lab.training.conversion.adapter_file import packed, write_adapter

ADAPTER_PARTS: dict[str, AdapterName] = {"gap adapter": "gap", "edit adapter": "edit"}
"""What the runs of `adapt` train, as their checkpoints name it."""


def export(base: Path, run: Path, out: Path, name: str) -> None:
    """Copy the base's files and add the last checkpoint's running mean of the adapter, in bfloat16."""
    checkpoint = run / "checkpoint.pt"
    if not checkpoint.is_file():
        raise ModelNotFound(f"no checkpoint.pt in {run}; run the train step first")
    saved = torch.load(checkpoint, weights_only=True, map_location="cpu")
    out.mkdir(parents=True, exist_ok=True)
    trained = {k: v.to(torch.bfloat16) for k, v in saved.get("mean", saved["adapter"]).items()}
    arrays = {name: tensor.view(torch.int16).numpy().view(bfloat16) for name, tensor in trained.items()}
    if (part := saved.get("part", "writer")) in ADAPTER_PARTS:
        target = out / adapters.file_name(ADAPTER_PARTS[part])
        write_adapter(target, weights.read_config(base), arrays)
        _print_result(saved, target)
        return
    for file in ("model.safetensors", "tokenizer.json", weights.READER_FILE):
        if (base / file).is_file() and not _same_size(base / file, out / file):
            shutil.copyfile(base / file, out / file)
    config = json.loads((base / "config.json").read_text("utf-8"))
    if part in ("reader", "denoiser"):
        if (base / weights.READER_FILE).is_file():
            raise ModelCorrupt(f"the reader of {base} was trained already; name the base that this run began with")
        target = out / weights.READER_FILE
        if part == "denoiser":
            names = ("mask_token_id", "expand_token_id", "eos_token_id")
            config |= {"name": name, **dict(zip(names, saved["tokens"], strict=True))}
    else:
        target = out / "adapter.safetensors"
        config |= {"name": name, "kind": "masked", "adapter_rank": saved["plan"]["rank"]}
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    if part in ("reader", "denoiser"):
        save_file(trained, target)
    else:
        save_packed(packed(arrays), target)
    _print_result(saved, target)


def _print_result(saved: dict[str, Any], target: Path) -> None:
    spent = f"step {saved['step']}, {saved['canvas_tokens']} tokens learned, {saved['elapsed'] / 60:.0f} minutes"
    print(f"{target.parent}: {spent}, {target.stat().st_size / 1e6:.1f} MB {target.stem}")


def _same_size(one: Path, other: Path) -> bool:
    return other.exists() and one.stat().st_size == other.stat().st_size


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mercury_lab.training export", description=__doc__)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="Mercury 135M")
    options = parser.parse_args(argv)
    export(options.base, options.run, options.out, options.name)
    return 0
