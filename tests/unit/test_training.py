"""A tiny model learns, stops, goes on and becomes a folder that the engine loads."""

import random

import pytest
import torch
from mercury_engine.errors import ModelNotFound
from mercury_engine.requests import FillRequest
from mercury_engine.training import objective, train
from mercury_engine.training.export import export
from mercury_engine.training.gaps import GapSampler
from mercury_engine.training.objective import Noise, canvas_loss, corrupt
from mercury_engine.training.sources import HeldOut
from mercury_engine.training.train import Plan, Run, noise, rate

from tests.unit import tiny

CODE = '"""A toy."""\n\n' + "".join(
    f"def add_{n}(left, right):\n    total = left + right + {n}\n    return total\n\n\n" for n in range(20)
)

PLAN = Plan(minutes=60, files=1, gaps=3, rank=2)


@pytest.fixture
def base(tmp_path):
    return tiny.folder(tmp_path / "base", rank=0)


@pytest.fixture
def corpus(tmp_path):
    return tiny.corpus(tmp_path / "corpus", [("toy", "toy/a.py", CODE), ("toy", "toy/b.py", CODE[::-1])])


@pytest.fixture
def run(base, corpus, tmp_path):
    return Run(base, corpus, tmp_path / "run", PLAN, torch.device("cpu"))


def steps(run: Run, count: int) -> None:
    for _ in range(count):
        run.one_step()
        run.step += 1
    run.elapsed += count


def test_the_loss_falls_on_a_repeated_batch(run):
    gaps = [g for g in run.sampler.gaps(run.mixture.draw(), 4) if g.near]
    canvases = corrupt(run.network, gaps, 8, random.Random(0), Noise())
    losses = []
    for _ in range(25):
        loss = canvas_loss(run.network, gaps, canvases, run.codec.start_id, Noise()).total
        run.optimizer.zero_grad()
        loss.backward()
        for group in run.optimizer.param_groups:
            group["lr"] = 1e-2
        run.optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]


def test_training_leaves_the_reader_as_it_was(run):
    reader = {n: p.clone() for n, p in run.network.named_parameters() if not p.requires_grad}
    adapter = {n: p.detach().clone() for n, p in run.trained.items()}
    steps(run, 3)
    assert all(torch.equal(p, reader[n]) for n, p in run.network.named_parameters() if n in reader)
    assert any(not torch.equal(p, adapter[n]) for n, p in run.trained.items())


def test_a_run_goes_on_at_the_step_and_time_where_it_was_saved(run, base, corpus):
    steps(run, 3)
    run.save()
    resumed = Run(base, corpus, run.folder, PLAN, torch.device("cpu"))
    assert (resumed.step, resumed.elapsed, resumed.canvas_tokens) == (3, 3.0, run.canvas_tokens)
    assert run.canvas_tokens > 0
    assert all(torch.equal(p, run.trained[n]) for n, p in resumed.trained.items())
    moments = [s["exp_avg"] for s in resumed.optimizer.state.values()]
    assert moments
    assert any(m.abs().sum() > 0 for m in moments)


def test_a_leg_that_is_over_leaves_a_checkpoint(run):
    run.leg(0)
    assert (run.folder / "checkpoint.pt").is_file()


def test_an_exported_run_loads_and_fills(run, base, tmp_path):
    steps(run, 2)
    run.save()
    export(base, run.folder, tmp_path / "model", "toy model")
    engine = tiny.load(tmp_path / "model")
    assert engine.name == "toy model"
    assert engine.writer is not None
    assert engine.fill(FillRequest(near="def add_", max_slots=4)).steps >= 1
    markers = run.mean["markers"].detach().to(torch.bfloat16).float()
    torch.testing.assert_close(engine.writer.markers.float(), markers)


@pytest.mark.parametrize(("package", "path"), [("flask", "x/a.py"), ("toy", "toy/click/core.py")])
def test_a_corpus_with_a_held_out_package_is_refused(base, tmp_path, package, path):
    corpus = tiny.corpus(tmp_path / "bad", [("toy", "toy/a.py", CODE), (package, path, CODE)])
    with pytest.raises(HeldOut):
        Run(base, corpus, tmp_path / "run", PLAN, torch.device("cpu"))
    assert not (tmp_path / "run").exists()


def test_the_learning_rate_warms_up_and_falls_with_the_time_of_the_whole_run():
    assert rate(0, 0, PLAN) < rate(0, 29, PLAN) == rate(1000, 500, PLAN) == PLAN.learning_rate
    assert rate(3400, 500, PLAN) < rate(3000, 500, PLAN) < PLAN.learning_rate
    assert rate(9999, 500, PLAN) == pytest.approx(0.05 * PLAN.learning_rate)


def test_the_device_is_an_option(base, corpus, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(train.Run, "leg", lambda self, minutes: seen.append(self.network.embedding.device.type))
    options = ["--base", base, "--corpus", corpus, "--run", tmp_path / "run", "--device", "cpu", "--rank", 2]
    assert train.main([str(option) for option in options]) == 0
    assert seen == ["cpu"]


def test_gaps_hold_the_text_between_their_sides(run):
    file = run.mixture.files["python"][0]
    sampler = GapSampler(run.codec, random.Random(1))
    gaps = sampler.gaps(file, 8)
    assert gaps
    for gap in gaps:
        decode = run.codec.decode
        start, target = decode(gap.near), decode(gap.target)
        after = "".join(decode(list(block)) for block in gap.suffix)
        assert target.endswith(gap.truth)
        assert start + target + after in file.text


def test_the_same_seed_draws_the_same_gaps(run):
    file = run.mixture.files["python"][0]
    first, second = (GapSampler(run.codec, random.Random(5)).gaps(file, 4) for _ in range(2))
    assert first == second


def test_a_fresh_run_starts_from_the_weights_of_its_parent_with_a_clock_of_its_own(run, base, corpus, tmp_path):
    steps(run, 2)
    run.save()
    child = Run(base, corpus, tmp_path / "child", PLAN, torch.device("cpu"), run.folder)
    assert (child.step, child.elapsed) == (0, 0.0)
    assert all(torch.equal(p, run.trained[n]) for n, p in child.trained.items())
    with pytest.raises(ModelNotFound, match=r"no checkpoint\.pt"):
        Run(base, corpus, tmp_path / "orphan", PLAN, torch.device("cpu"), tmp_path / "nowhere")


def test_packed_canvases_give_the_hidden_states_of_canvases_written_alone(run):
    gaps = [g for g in run.sampler.gaps(run.mixture.draw(), 4) if g.near]
    network, start = run.network, run.codec.start_id
    canvases = corrupt(network, gaps, 8, random.Random(0), Noise(exact=0.5))
    context = objective.read_context(network, gaps, start)
    packed = objective._write(network, gaps, canvases, context).split([len(c.inputs) for c in canvases])
    for hidden, canvas in zip(packed, canvases, strict=True):
        alone_context = objective.read_context(network, [gaps[canvas.gap]], start)
        only = objective.Canvas(0, canvas.inputs, canvas.targets, canvas.weights, canvas.masked)
        alone = objective._write(network, [gaps[canvas.gap]], [only], alone_context)
        torch.testing.assert_close(hidden.float(), alone.float(), atol=0.06, rtol=0.05)


def test_the_last_part_of_a_run_shows_the_models_own_guesses(run):
    assert noise(0, PLAN).own == 0
    assert noise(59 * 60, PLAN).own > 0
    run.elapsed = 59.5 * 60
    assert run.one_step()["loss"] > 0
