"""Half an hour on a borrowed GPU, a command a step: `python benchmarks/gpu_session STEP [--inputs DIR] [--out DIR]`.

`pack` cuts what must travel into folders below the machine's limit, `receive` joins it there; the other steps are
checks and training legs, each below ten minutes, whose results are copied to --out in pieces. The schedule is in
benchmarks/README.md. `--device cpu` with few `--minutes` rehearses a step.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from gpu_session.pieces import MIB, cut, pack, receive  # noqa: E402
from gpu_session.reader_start import CHANGE  # noqa: E402
from gpu_session.steps import BUNDLED, ROOT, RUNS, STEPS, Command, Session  # noqa: E402

SENT_MIB = 54
"""MiB of a folder of pieces; with the tree, without its weights, about 62."""

RETURNED_MIB = 15
"""MiB of a piece that is copied back."""

ASSETS = ROOT / "engine" / "mercury_engine" / "assets"


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    if options.step == "pack":
        files = dict(_named(word) for word in options.files)
        for folder in pack(files, options.out, options.mib * MIB):
            print(folder, sum(path.stat().st_size for path in folder.iterdir()) // MIB, "MiB")
        return 0
    if options.step == "receive":
        missing = receive(options.folder, options.inputs)
        print("missing:", ", ".join(missing) or "nothing")
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    place_weights(options.inputs)
    session = Session(options.inputs.resolve(), options.out.resolve(), options.device, options.minutes)
    failed = run(STEPS[options.step](session), session.out)
    if (name := RUNS.get(options.step)) is not None:
        bring_back(session, name)
    return 1 if failed else 0


def run(commands: Sequence[Command], out: Path) -> bool:
    """Run commands one after the other, each with its log in `out`; returns whether one failed that is needed."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "engine"), str(ROOT / "kernels")))
    environment = os.environ | {"PYTHONPATH": path + os.pathsep + os.environ.get("PYTHONPATH", "")}
    for command in commands:
        began = time.perf_counter()
        with (out / f"{command.name}.log").open("wb") as log:
            try:
                code = subprocess.run(
                    command.words, cwd=ROOT, env=environment, stdout=log, stderr=log, timeout=60 * command.minutes
                ).returncode
            except (subprocess.TimeoutExpired, OSError) as error:
                code = -1
                log.write(f"{error}\n".encode())
        print(
            f"{command.name}: {'ok' if not code else f'failed ({code})'}, {time.perf_counter() - began:.0f} s",
            flush=True,
        )
        if code:
            print((out / f"{command.name}.log").read_text(errors="replace")[-1500:])
            if not command.optional:
                return True
    return False


def bring_back(session: Session, name: str) -> None:
    """Copy a run's log and exported weights to `out`, and a checkpoint of weights alone, which `--parent` takes."""
    folder = session.run(name)
    if (folder / "log.jsonl").is_file():
        shutil.copy(folder / "log.jsonl", session.out / f"train-{name}.jsonl")
    for pattern in ("*adapter*.safetensors", CHANGE):
        for path in sorted(session.run(f"{name}-out").glob(pattern)):
            cut(path, session.out, RETURNED_MIB * MIB)
    if (folder / "checkpoint.pt").is_file():
        import torch

        saved = torch.load(folder / "checkpoint.pt", weights_only=True, map_location="cpu")
        light = session.inputs / f"{name}-parent.pt"
        weights = {key: each.bfloat16() for key, each in saved["mean"].items()}
        left_out = ("adapter", "mean", "optimizer")
        torch.save({key: each for key, each in saved.items() if key not in left_out} | {"adapter": weights}, light)
        cut(light, session.out, RETURNED_MIB * MIB)


def place_weights(inputs: Path) -> None:
    """Put the weights of the package's models, which travel apart, where the package has them."""
    for path in inputs.glob("mercury-*/*.safetensors"):
        target = ASSETS / path.parent.name / path.name
        if target.parent.is_dir() and not target.exists():
            shutil.copyfile(path, target)
    if not (inputs / BUNDLED / "config.json").exists():
        shutil.copytree(ASSETS / BUNDLED, inputs / BUNDLED, dirs_exist_ok=True)


def _named(word: str) -> tuple[str, Path]:
    name, _, path = word.partition("=")
    if not path or not Path(path).is_file():
        raise SystemExit(f"{word!r} is not NAME=FILE with a file that exists")
    return name, Path(path)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__)
    steps = made.add_subparsers(dest="step", metavar="STEP", required=True)
    packing = steps.add_parser("pack", help="cut files into folders of pieces")
    packing.add_argument("files", nargs="+", metavar="NAME=FILE")
    packing.add_argument("--out", type=Path, required=True)
    packing.add_argument("--mib", type=int, default=SENT_MIB, help=f"MiB of a folder (default {SENT_MIB})")
    receiving = steps.add_parser("receive", help="take a folder of pieces, and join what is complete")
    receiving.add_argument("folder", type=Path)
    receiving.add_argument("--inputs", type=Path, default=Path("/tmp/mercury"))
    for name, step in STEPS.items():
        made_step = steps.add_parser(name, help=(step.__doc__ or "").strip())
        made_step.add_argument("--inputs", type=Path, default=Path("/tmp/mercury"))
        made_step.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "/tmp/mercury/out")))
        made_step.add_argument("--device", default="cuda")
        made_step.add_argument("--minutes", type=float, default=8.0, help="minutes of training (default 8)")
    return made


if __name__ == "__main__":
    sys.exit(main())
