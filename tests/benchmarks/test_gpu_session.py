"""Half an hour on a borrowed GPU is rehearsed: without the server's packages, on the CPU, every training step."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from mercury_engine.models import weights
from mercury_lab.training.commits import commit_edit
from mercury_lab.training.conversion.export import export
from mercury_lab.training.data import pack
from safetensors.torch import load_file

from tests.support import tiny, training_data

ROOT = Path(__file__).parents[2]
SESSION = ROOT / "benchmarks" / "gpu_session"

MACHINE = Path(__file__).parent / "gpu_machine"


@pytest.fixture(scope="module")
def pieces():
    spec = importlib.util.spec_from_file_location("pieces", SESSION / "pieces.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def session(*words: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(MACHINE), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SESSION), *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    """What travels, at a size for a test."""
    folder = tmp_path_factory.mktemp("inputs")
    tiny.folder(folder / "qwen2.5-coder-0.5b", rank=0, markers=tiny.QWEN_MARKERS, **tiny.WIDE)
    tiny.folder(folder / "mercury-135m", rank=0)
    (folder / "commits").mkdir()
    for split in ("training", "validation"):
        commit_edit.write(folder / "commits" / f"{split}.jsonl.gz", [training_data.commit()])
    corpus, tokenizer = training_data.corpus(folder / "corpus"), folder / "mercury-135m"
    for name in ("corpus", "held_out"):
        pack.main(["--corpus", str(corpus), "--out", str(folder / f"{name}.jsonl.gz"), "--tokenizer", str(tokenizer)])
    return folder


class Rehearsal:
    """Runs steps in a process that has imported torch, see `rehearsal.py`."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(MACHINE), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(MACHINE / "rehearsal.py")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=environment, text=True, **pipes)
        self._output = folder / "output"

    def run(self, *words: object) -> tuple[int, str]:
        """A step's exit code and what it printed."""
        self.process.stdin.write(json.dumps([[*map(str, words)], str(self._output)]) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        return code, self._output.read_text()


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory) -> Iterator[Rehearsal]:
    made = Rehearsal(tmp_path_factory.mktemp("rehearsal"))
    yield made
    made.process.communicate()


def test_a_rehearsal_finds_only_the_packages_of_such_a_machine():
    there = ["torch", "triton", "transformers", "tokenizers", "numpy", "safetensors", "ml_dtypes", "mercury_engine"]
    gone = ["pygls", "lsprotocol", "tree_sitter", "attrs", "gguf", "platformdirs", "watchfiles", "datasketch", "pytest"]
    find = f"import importlib.util as u; print([name for name in {there + gone} if u.find_spec(name)])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(MACHINE), *sys.path])}
    found = subprocess.run([sys.executable, "-c", find], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(there)


def test_files_arrive_whole_whatever_the_order_of_their_pieces(pieces, tmp_path):
    content = {"weights.bin": os.urandom(2500), "commits/training.gz": b"", "small.txt": b"text"}
    for name, data in content.items():
        path = tmp_path / "here" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    folders = pieces.pack({name: tmp_path / "here" / name for name in content}, tmp_path / "sent", 1000)
    assert len(folders) == 3
    sizes = [sum(p.stat().st_size for p in each.iterdir() if p.name != pieces.MANIFEST) for each in folders]
    assert max(sizes) <= 1000
    assert "weights.bin" in pieces.receive(folders[2], tmp_path / "there")
    assert "weights.bin" in pieces.receive(folders[0], tmp_path / "there")
    assert pieces.receive(folders[1], tmp_path / "there") == []
    assert {name: (tmp_path / "there" / name).read_bytes() for name in content} == content


def test_a_damaged_piece_is_found(pieces, tmp_path):
    (tmp_path / "file").write_bytes(b"right")
    [folder] = pieces.pack({"file": tmp_path / "file"}, tmp_path / "sent", 1000)
    (folder / "file.000").write_bytes(b"wrong")
    with pytest.raises(ValueError, match="arrived damaged"):
        pieces.receive(folder, tmp_path / "there")
    assert not (tmp_path / "there" / "file").exists()


def test_a_file_too_large_to_come_back_is_cut(pieces, tmp_path):
    (tmp_path / "file").write_bytes(bytes(range(250)))
    (tmp_path / "out").mkdir()
    made = pieces.cut(tmp_path / "file", tmp_path / "out", 100)
    assert [path.name for path in made] == ["file.00", "file.01", "file.02"]
    assert b"".join(path.read_bytes() for path in made) == bytes(range(250))


@pytest.mark.parametrize(
    ("step", "adapter"),
    [("edits", "edit.adapter.safetensors"), ("gaps", "gap.adapter.safetensors")],
)
def test_a_training_step_runs_without_the_server_and_brings_its_weights_back(
    rehearsal, inputs, tmp_path, step, adapter
):
    code, printed = rehearsal.run(
        step, "--inputs", inputs, "--out", tmp_path / "out", "--device", "cpu", "--minutes", 0.02
    )
    assert code == 0, printed
    assert load_file(tmp_path / "out" / adapter)
    [log] = (tmp_path / "out").glob("train-*.jsonl")
    assert any("validation" in json.loads(line) for line in log.read_text().splitlines())
    [light] = (tmp_path / "out").glob("*-parent.pt")
    assert torch.load(light, weights_only=True)["adapter"]


def test_the_denoisers_leg_brings_back_what_export_makes_a_model_of(rehearsal, inputs, tmp_path):
    code, printed = rehearsal.run(
        "diffusion", "--inputs", inputs, "--out", tmp_path / "out", "--device", "cpu", "--minutes", 0.02
    )
    assert code == 0, printed
    [piece] = (tmp_path / "out").glob("denoiser-parent.pt*")
    (tmp_path / "run").mkdir()
    shutil.copyfile(piece, tmp_path / "run" / "checkpoint.pt")
    export(inputs / "qwen2.5-coder-0.5b", tmp_path / "run", tmp_path / "model", "Denoiser")
    assert weights.read_config(tmp_path / "model").masked_attention is not None


def test_the_readers_leg_goes_on_from_the_bundled_reader_and_is_compared_with_it(rehearsal, inputs, tmp_path):
    """The first leg makes the reader that the second one begins with."""
    again = tmp_path / "inputs"
    shutil.copytree(inputs, again, ignore=shutil.ignore_patterns("runs", "parents", "reader-base"))
    (again / "mercury-135m" / "settings.json").write_text(json.dumps({"decoding": {"lookahead": 4}}))
    learned, begun = [], []
    for out in (tmp_path / "first", tmp_path / "second"):
        code, printed = rehearsal.run("reader", "--inputs", again, "--out", out, "--device", "cpu", "--minutes", 0.02)
        assert code == 0 and "failed" not in printed, printed
        learned.append(load_file(out / "reader.safetensors"))
        assert torch.load(out / "reader-parent.pt", weights_only=True)["part"] == "reader"
        assert "validation" in (out / "train-reader.jsonl").read_text()
        for name in ("before", "after"):
            assert json.loads((out / f"infill-{name}.json").read_text())["rest_of_line"]["count"] == 1
        shutil.copy(out / "reader.safetensors", again / "mercury-135m")
        if (start := again / "parents" / "reader" / "checkpoint.pt").exists():
            begun.append(torch.load(start, weights_only=True)["adapter"])
        for each in ("runs", "parents"):
            shutil.rmtree(again / each, ignore_errors=True)
    [start] = begun  # the first leg has nothing to begin with
    assert start.keys() == learned[0].keys() == learned[1].keys()
    assert all(torch.equal(start[name], weights) for name, weights in learned[0].items())


def test_steps_are_timed(rehearsal, inputs, tmp_path):
    code, printed = rehearsal.run("profile", "--inputs", inputs, "--out", tmp_path, "--device", "cpu")
    assert code == 0, printed
    assert json.loads((tmp_path / "gpu.json").read_text())["steps"]


def test_the_check_names_the_versions(inputs, tmp_path):
    done = session("check", "--inputs", inputs, "--out", tmp_path, "--device", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert torch.__version__ in (tmp_path / "versions.log").read_text()


def test_the_tests_for_a_gpu_are_found_without_the_server(tmp_path):
    paths = [str(MACHINE), *(str(ROOT / each) for each in (".", "engine", "kernels"))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment["GPU_MACHINE_TESTS"] = "1"
    environment.pop("TRITON_INTERPRET", None)
    command = [sys.executable, "-m", "pytest", "-qq", "-m", "gpu", "--collect-only", "-p", "no:cacheprovider"]
    tested = ["tests/kernels", "tests/lab/training/test_packed.py"]
    done = subprocess.run([*command, *tested], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "tests/kernels/test_linear.py" in done.stdout and "test_packed.py" in done.stdout


def test_a_command_that_fails_says_so_with_the_end_of_its_log(rehearsal, tmp_path):
    (tmp_path / "inputs" / "mercury-135m").mkdir(parents=True)
    (tmp_path / "inputs" / "mercury-135m" / "config.json").write_text("{}")
    code, printed = rehearsal.run(
        "edits", "--inputs", tmp_path / "inputs", "--out", tmp_path, "--device", "cpu", "--minutes", 0.02
    )
    assert code == 1
    assert "train: failed" in printed and "qwen2.5-coder-0.5b" in printed
