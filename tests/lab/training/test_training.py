"""A tiny model learns, stops, goes on with the same losses and becomes a folder that the engine loads."""

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.device.torch_network import TorchNetwork
from mercury_engine.errors import ModelCorrupt, ModelNotFound, RequestError
from mercury_lab.training.conversion.export import export
from mercury_lab.training.data.sources import HeldOut
from mercury_lab.training.optimisation import train
from mercury_lab.training.optimisation.loss import LateStage
from mercury_lab.training.optimisation.train import WriterRun

from tests.support import tiny, training_data
from tests.support.training_data import CODE, PLAN, Clock

CPU = torch.device("cpu")


@pytest.fixture
def run(tmp_path):
    return training_data.run(tmp_path)


def log(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def losses(folder):
    return [row["loss"] for row in log(folder) if "loss" in row]


def test_the_loss_falls_on_a_repeated_step(tmp_path):
    run = training_data.run(tmp_path, replace(PLAN, learning_rate=1e-2, gaps=4))
    layouts = run.steps[0]
    run.step = 30  # behind the warm-up
    found = [run.one_step(layouts)["loss"] for _ in range(25)]
    assert found[-1] < 0.8 * found[0]


def test_training_leaves_the_reader_as_it_was(run):
    reader = {n: p.clone() for n, p in run.network.named_parameters() if not p.requires_grad}
    adapter = {n: p.detach().clone() for n, p in run.trained.items()}
    run.leg(3)
    assert all(torch.equal(p, reader[n]) for n, p in run.network.named_parameters() if n in reader)
    changed = {n for n, p in run.trained.items() if not torch.equal(p, adapter[n])}
    assert {"markers", "layers.0.qkv.up", "layers.1.down.down"} <= changed
    assert not any(mean.requires_grad for mean in run.mean.values())


def test_two_legs_have_the_losses_of_one(tmp_path):
    plan = replace(PLAN, minutes=6)  # warm-up, decay and the model's own guesses
    training_data.run(tmp_path, plan, "whole").leg(6)
    training_data.run(tmp_path, plan, "parts").leg(3)
    second = training_data.run(tmp_path, plan, "parts")
    assert (second.step, second.elapsed) == (3, 180.0)
    second.leg(3)
    assert len(losses(tmp_path / "whole")) == 6
    assert losses(tmp_path / "whole") == losses(tmp_path / "parts")


def test_a_run_goes_on_at_the_step_and_time_where_it_was_saved(run, tmp_path):
    run.leg(3)
    resumed = training_data.run(tmp_path)
    assert (resumed.step, resumed.elapsed, resumed.canvas_tokens) == (3, 180.0, run.canvas_tokens)
    assert run.canvas_tokens > 0
    assert all(torch.equal(p, run.trained[n]) for n, p in resumed.trained.items())
    assert any(s["exp_avg"].abs().sum() > 0 for s in resumed.optimizer.state.values())


def test_an_older_run_with_muon_goes_on_without_its_state(run, tmp_path):
    run.leg(2)
    path, name = run.folder / "checkpoint.pt", "layers.0.qkv.up"
    saved = torch.load(path, weights_only=True)
    saved["plan"] |= {"optimizer": "muon", "edits": 0.12}
    saved["optimizer"][name] = {"momentum_buffer": torch.zeros_like(saved["adapter"][name])}
    torch.save(saved, path)
    resumed = training_data.run(tmp_path)
    assert resumed.trained[name] not in resumed.optimizer.state
    assert resumed.trained["markers"] in resumed.optimizer.state
    resumed.leg(1)
    assert resumed.step == 3


def test_a_checkpoint_of_another_rank_is_refused_with_its_rank(run, tmp_path):
    run.leg(0)
    with pytest.raises(ModelCorrupt, match=r"--rank 2"):
        training_data.run(tmp_path, replace(PLAN, rank=3))


def test_a_broken_checkpoint_is_told_with_its_path(run, tmp_path):
    (run.folder / "checkpoint.pt").write_bytes(b"PK broken")
    with pytest.raises(ModelCorrupt, match=r"checkpoint\.pt cannot be read"):
        training_data.run(tmp_path)


@pytest.mark.parametrize("wrong", [{"minutes": 0}, {"files": 0}, {"gaps": -1}])
def test_a_plan_that_cannot_be_run_is_refused(wrong):
    with pytest.raises(RequestError, match="above 0"):
        replace(PLAN, **wrong)


def test_a_leg_that_is_over_leaves_a_checkpoint(run):
    run.leg(0)
    assert (run.folder / "checkpoint.pt").is_file()
    assert run.step == 0


def test_a_leg_ends_with_the_plan(tmp_path):
    run = training_data.run(tmp_path, replace(PLAN, minutes=2))
    run.leg(60)
    assert run.step == 2


def test_processes_that_draw_ahead_change_no_loss(tmp_path):
    training_data.run(tmp_path, name="alone").leg(3)
    # In a process of its own: it forks, which a process with threads need not survive.
    helped = "import sys, pathlib; from tests.support import training_data as data; "
    helped += "data.run(pathlib.Path(sys.argv[1]), name='helped', workers=2).leg(3)"
    subprocess.run([sys.executable, "-c", helped, str(tmp_path)], cwd=Path(__file__).parents[3], check=True)
    assert len(losses(tmp_path / "alone")) == 3
    assert losses(tmp_path / "alone") == losses(tmp_path / "helped")


def test_the_log_tells_what_was_computed(tmp_path):
    run = training_data.run(tmp_path, peak_tflops=1e-6)
    run.leg(2)
    for row in log(run.folder):
        assert row["written_per_second"] > 0
        assert row["read_per_second"] > 0
        assert row["peak_share"] == pytest.approx(row["tflops"] * 1e6)


def test_an_exported_run_loads_and_fills(run, tmp_path, capsys):
    run.leg(2)
    export(tmp_path / "base", run.folder, tmp_path / "model", "toy model")
    assert "MB adapter" in capsys.readouterr().out
    engine = tiny.load(tmp_path / "model")
    assert engine.name == "toy model"
    assert isinstance(engine.parts.denoiser, TorchNetwork)
    assert engine.fill(FillRequest(near="def add_", max_slots=4)).steps >= 1
    stored = run.mean["markers"].detach().to(torch.bfloat16).float()
    torch.testing.assert_close(engine.parts.denoiser.decoder.markers.float(), stored)


@pytest.mark.parametrize(("package", "path"), [("flask", "x/a.py"), ("toy", "toy/click/core.py")])
def test_a_corpus_with_a_held_out_package_is_refused(tmp_path, package, path):
    base = training_data.base(tmp_path / "base")
    corpus = tiny.corpus(tmp_path / "bad", [("toy", "toy/a.py", CODE), (package, path, CODE)])
    with pytest.raises(HeldOut):
        WriterRun(base, corpus, tmp_path / "run", PLAN, CPU)
    assert not (tmp_path / "run").exists()


def test_a_corpus_that_changed_between_legs_is_looked_through_again(run, tmp_path):
    run.leg(0)
    bad = tiny.corpus(tmp_path / "bad", [("toy", "toy/a.py", CODE), ("flask", "x/a.py", CODE)])
    with pytest.raises(HeldOut):
        WriterRun(tmp_path / "base", bad, run.folder, PLAN, CPU)


def test_the_learning_rate_warms_up_and_falls_with_the_time_of_the_whole_run():
    assert PLAN.rate(0, 0) < PLAN.rate(0, 29) == PLAN.rate(1000, 500) == PLAN.learning_rate
    assert PLAN.rate(3400, 500) < PLAN.rate(3000, 500) < PLAN.learning_rate
    assert PLAN.rate(9999, 500) == pytest.approx(0.05 * PLAN.learning_rate)


def test_the_last_part_of_a_run_shows_the_models_own_guesses_and_sharpens(run):
    assert PLAN.late_stage(0) == LateStage()
    assert PLAN.late_stage(59 * 60).guesses
    layouts = run.steps[0]
    early = run.one_step(layouts)["loss"]
    run.elapsed = 59.5 * 60
    assert run.one_step(layouts)["loss"] not in (0.0, early)


def test_options_become_plan_and_setup(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(train.WriterRun, "leg", lambda self, minutes: seen.append((self, minutes)))
    base, corpus = training_data.base(tmp_path / "base"), training_data.corpus(tmp_path / "corpus")
    options = ["--base", base, "--corpus", corpus, "--run", tmp_path / "run", "--device", "cpu", "--rank", 2]
    options += ["--leg", 9, "--canvases", 4, "--validate-every", 2]
    assert train.main([str(option) for option in options]) == 0
    ((run, minutes),) = seen
    assert (run.network.device.type, minutes) == ("cpu", 9)
    assert (run.plan.canvases, run.plan.context) == (4, 800)
    assert (run.setup.packed, run.setup.compiled, run.setup.workers, run.setup.validate_every) == (False, False, 0, 120)
    assert run.steps.noise.complement


def test_compiling_for_a_cpu_is_refused(tmp_path):
    options = ["--base", tmp_path, "--corpus", tmp_path, "--run", tmp_path, "--device", "cpu", "--compile"]
    with pytest.raises(RequestError, match="needs a GPU"):
        train.main([str(option) for option in options])


def test_a_fresh_run_starts_from_the_weights_of_its_parent_with_a_clock_of_its_own(run, tmp_path):
    run.leg(2)
    child = training_data.run(tmp_path, name="child", parent=run.folder)
    assert (child.step, child.elapsed) == (0, 0.0)
    assert all(torch.equal(p, run.trained[n]) for n, p in child.trained.items())
    with pytest.raises(ModelNotFound, match=r"no checkpoint\.pt"):
        training_data.run(tmp_path, name="orphan", parent=tmp_path / "nowhere")


def test_validation_is_logged_at_the_start_now_and_then_and_at_the_end(tmp_path):
    plan = replace(PLAN, minutes=4)
    held_out = training_data.corpus(tmp_path / "held_out")
    run = training_data.run(tmp_path, plan, validation=held_out, validation_gaps=8, validate_every=150.0)
    trained = {n: p.detach().clone() for n, p in run.trained.items()}
    before = run.validated()
    assert all(torch.equal(p, trained[n]) for n, p in run.trained.items())
    run.leg(4)
    rows = [row for row in log(run.folder) if "validation" in row]
    assert [row["step"] for row in rows] == [0, 3, 4]
    assert [("reader" in row) for row in rows] == [True, False, False]
    rates = [row["validation"]["rates"] for row in rows]
    assert rates[0] == before["rates"] != rates[-1]
    assert set(rates[0]) == {"0.25", "0.5", "0.75", "1.0"}
    assert all(value > 0 for value in rates[0].values())


def test_the_plan_is_stored_with_the_checkpoint(run):
    run.leg(1)
    assert torch.load(run.folder / "checkpoint.pt", weights_only=True)["plan"] == asdict(PLAN)


def test_checkpoints_are_written_on_the_way(tmp_path, monkeypatch):
    run = training_data.run(tmp_path, save_every=100.0, clock=Clock())
    saved = []
    monkeypatch.setattr(run, "save", lambda: saved.append(run.step))
    run.leg(5)
    assert saved == [2, 4, 5]
