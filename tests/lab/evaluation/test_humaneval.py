"""HumanEval-Infilling: the published format, the run of programs, pass@1 with its interval."""

import gzip
import json
import sys

import pytest
from mercury_engine.api import Fill
from mercury_lab.engine import Engine
from mercury_lab.evaluation import humaneval
from mercury_lab.evaluation.humaneval import Task

from tests.support import masked, tiny

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX")

HEAD = "def double(x):\n    '''Twice x.'''\n"
TEST = "def check(candidate):\n    assert candidate(2) == 4\n"
SINGLE = Task("SingleLineInfilling/HumanEval/0/L0", HEAD, "    return y\n", "    y = x + x\n", TEST, "double")
SPAN = Task("RandomSpanInfilling/HumanEval/0/1", HEAD + "    return x", " x\n", " +", TEST, "double")
WHOLE = Task("HumanEval/0", HEAD, "", "    return x + x\n", TEST, "double")


def written(path, *found: Task):
    rows = [{field: getattr(task, field) for field in Task.__slots__} for task in found]
    if rows and path.name.startswith("plain"):
        del rows[-1]["suffix"]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["tasks.jsonl", "tasks.jsonl.gz", "plain.jsonl"])
def test_the_published_files_are_read(name, tmp_path):
    assert humaneval.tasks(written(tmp_path / name, SINGLE, SPAN, WHOLE)) == [SINGLE, SPAN, WHOLE]


@pytest.mark.parametrize("task", [SINGLE, SPAN, WHOLE])
def test_the_right_text_passes_and_a_wrong_one_fails(task):
    assert humaneval.passes(task.program(task.canonical_solution.rstrip("\n")))
    assert not humaneval.passes(task.program("    return 0"))


@needs_posix
@pytest.mark.parametrize(
    "program",
    ["while True: pass", "import time; time.sleep(60)", "x = bytearray(8 << 30)", "exit(1)", "raise KeyError"],
)
def test_a_program_that_hangs_or_asks_for_too_much_fails(program):
    assert not humaneval.passes(program, seconds=1)


@needs_posix
def test_a_program_has_neither_the_environment_nor_this_folder(monkeypatch):
    monkeypatch.setenv("SECRET", "1")
    seen = "import os; assert 'SECRET' not in os.environ; assert os.listdir('.') == ['program.py']"
    assert humaneval.passes(seen)


@pytest.fixture(scope="module", params=["causal", "masked"])
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("humaneval") / request.param
    return tiny.folder(folder, rank=0) if request.param == "causal" else masked.folder(folder, "A2D-qwen2")[0]


def test_pass_at_1_comes_with_its_interval(model, tmp_path, capsys, monkeypatch):
    right = {SINGLE.prompt: "    y = x + x", SPAN.prompt: " *"}
    monkeypatch.setattr(Engine, "fill", lambda _, request: Fill(right.get(request.near, ""), 1.0, 2, 0.5, True))
    data = written(tmp_path / "tasks.jsonl", SINGLE, SPAN, WHOLE)
    assert humaneval.main(["--data", str(data), "--model", str(model), "--device", "cpu", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["tasks"], record["failed"]) == (3, [WHOLE.task_id])
    assert record["pass_at_1"] == pytest.approx(2 / 3)
    assert record["interval"] == pytest.approx([0.208, 0.939], abs=0.01)
    assert record["exact_match"] == pytest.approx(1 / 3)
