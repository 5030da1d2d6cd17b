"""What a leg of the bundled reader starts from: the base without its change, and the change as a run to go on from."""

import json
import shutil
from pathlib import Path

CHANGE = "reader.safetensors"

DEFAULT_RANK = 16
"""Rank of a change that starts anew."""


def lay_out(bundled: Path, base: Path, parent: Path, exported: Path) -> int:
    """Lay out the folders that training, `--parent` and the export read; returns the change's rank.

    A parent that was sent along stays. The exported model gets the bundled one's settings.
    """
    base.mkdir(parents=True, exist_ok=True)
    config = json.loads((bundled / "config.json").read_text("utf-8"))
    (base / "config.json").write_text(json.dumps(config | {"kind": "causal", "adapter_rank": 0}))  # without a writer
    for name in ("model.safetensors", "tokenizer.json"):
        if not (base / name).exists():
            (base / name).symlink_to((bundled / name).resolve())
    exported.mkdir(parents=True, exist_ok=True)
    if (bundled / "settings.json").is_file():
        shutil.copyfile(bundled / "settings.json", exported / "settings.json")
    if not (bundled / CHANGE).is_file():
        return DEFAULT_RANK
    return _as_run(bundled / CHANGE, parent)


def _as_run(change: Path, parent: Path) -> int:
    import torch
    from safetensors.torch import load_file

    learned = load_file(change)
    if not parent.exists():
        parent.mkdir(parents=True)
        torch.save({"part": "reader", "adapter": learned}, parent / "checkpoint.pt")
    return next(len(each) for name, each in learned.items() if name.endswith(".down"))
