"""A tiny reader learns to read behind blocks, and the change that it learned becomes part of a model folder."""

import json
import random
from dataclasses import replace

import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.device.torch_network import TorchNetwork
from mercury_engine.errors import ModelCorrupt
from mercury_engine.kv_cache.cache import BlockCache
from mercury_engine.models import decoder_weights, weights
from mercury_engine.models.decoder import AdaptedLinear
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_lab.engine import finished
from mercury_lab.training.conversion.export import export
from mercury_lab.training.data.corpus import SourceFile
from mercury_lab.training.examples.mixture import Mixture
from mercury_lab.training.examples.passages import PassageSteps
from mercury_lab.training.optimisation import reader, tuned
from mercury_lab.training.optimisation.merged import MergedLinear
from mercury_lab.training.optimisation.options import parser, setup_of
from mercury_lab.training.optimisation.plan import Setup
from mercury_lab.training.optimisation.reader import ReaderRun
from mercury_lab.training.optimisation.train import fresh_writer
from mercury_lab.training.optimisation.tuned import fresh_reader, passage_nats
from safetensors.torch import load_file, save_file

from tests.support import tiny, training_data
from tests.support.training_data import CODE, PLAN, Clock

CPU = torch.device("cpu")


def reader_run(folder, plan=PLAN, name="reader", **setup):
    """A reader's run on the toy corpus."""
    training_data.run(folder)  # makes base and corpus
    made = Setup(**({"clock": Clock()} | setup))
    return ReaderRun(folder / "base", folder / "corpus", folder / name, plan, CPU, setup=made)


@pytest.fixture
def run(tmp_path):
    return reader_run(tmp_path)


def losses(folder):
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [row["loss"] for row in rows if "loss" in row]


def drawn(tmp_path, text=CODE, count=3, **changes):
    """Passages of a single file at its start."""
    tokenizer = Tokenizer(training_data.base(tmp_path / "codec"))
    file = SourceFile("toy", "toy/a.py", "python", text)
    steps = PassageSteps(tokenizer, Mixture([file]), 1, count, 0, **changes)
    return tokenizer, steps, file


def test_the_loss_falls_on_a_repeated_step(tmp_path):
    run = reader_run(tmp_path, replace(PLAN, learning_rate=1e-2))
    run.step = 30  # behind the warm-up
    found = [run.one_step(run.steps[0])["loss"] for _ in range(25)]
    assert found[-1] < 0.9 * found[0]


def test_only_the_change_is_trained(run):
    kept = {n: p.clone() for n, p in run.network.named_parameters() if not p.requires_grad}
    assert set(kept) >= {"embedding", "norm", "markers"}
    assert all(name.rpartition(".")[2] in ("up", "down") for name in run.trained)
    before = {n: p.detach().clone() for n, p in run.trained.items()}
    run.leg(3)
    assert all(torch.equal(p, kept[n]) for n, p in run.network.named_parameters() if n in kept)
    assert all(not torch.equal(p, before[n]) for n, p in run.trained.items() if n.endswith("up"))


def test_two_legs_have_the_losses_of_one(tmp_path):
    plan = replace(PLAN, minutes=6)
    reader_run(tmp_path, plan, "whole").leg(6)
    reader_run(tmp_path, plan, "parts").leg(3)
    second = reader_run(tmp_path, plan, "parts")
    assert (second.step, second.elapsed) == (3, 180.0)
    second.leg(3)
    assert len(losses(tmp_path / "whole")) == 6
    assert losses(tmp_path / "whole") == losses(tmp_path / "parts")


def test_a_fresh_change_changes_nothing(tmp_path):
    tokenizer, steps, _ = drawn(tmp_path)
    passages = steps[0][0]
    plain = fresh_writer(tmp_path / "codec", 2, CPU)
    tuned = fresh_reader(tmp_path / "codec", 2, CPU)
    assert torch.equal(
        passage_nats(tuned, passages, tokenizer.start_id), passage_nats(plain, passages, tokenizer.start_id)
    )


def changed_reader(tmp_path):
    """A float32 reader whose change is not zero."""
    torch.manual_seed(1)
    network = fresh_reader(tmp_path / "codec", 2, CPU).float()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith(".up"):
                parameter.normal_(std=0.1)
    return network


def gradients(network, nats):
    network.zero_grad()
    nats.sum().backward()
    return {name: p.grad.clone() for name, p in network.named_parameters() if p.requires_grad}


def test_without_padding_the_loss_and_its_gradients_are_the_same(tmp_path, monkeypatch):
    tokenizer, steps, _ = drawn(tmp_path, count=5)
    passages = steps[0][0]
    assert len({len(passage.near) for passage in passages}) > 1
    network = changed_reader(tmp_path)
    ragged = tuned.passage_nats(network, passages, tokenizer.start_id)
    found = gradients(network, ragged)
    monkeypatch.setattr(tuned, "_read_ragged", tuned._read_padded)
    padded = tuned.passage_nats(network, passages, tokenizer.start_id)
    torch.testing.assert_close(ragged, padded, atol=1e-4, rtol=1e-4)
    for name, wanted in gradients(network, padded).items():
        assert wanted.abs().max() > 0, name
        torch.testing.assert_close(found[name], wanted, atol=1e-4, rtol=1e-3, msg=name)


def test_a_merged_change_is_that_of_two_products_and_follows_what_is_learned(tmp_path):
    torch.manual_seed(2)
    plain = AdaptedLinear(6, 5, bias=True, rank=2)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.normal_()
    merged = MergedLinear(plain)
    for _ in range(2):
        with torch.no_grad():
            plain.up.mul_(3.0)  # type: ignore[union-attr]
        results = []
        for linear in (plain, merged):
            x = torch.arange(18.0).view(1, 3, 6).requires_grad_()
            y = linear(x, True)
            y.square().sum().backward()
            results.append([y.detach(), x.grad, plain.down.grad.clone(), plain.up.grad.clone()])  # type: ignore[union-attr]
            plain.zero_grad()
        torch.testing.assert_close(results[1], results[0], atol=1e-2, rtol=1e-4)


def test_a_passage_is_read_as_the_engine_reads_it(tmp_path):
    tokenizer, steps, _ = drawn(tmp_path)
    network = fresh_reader(tmp_path / "codec", 2, CPU).float()
    passage = next(p for p in steps[0][0] if len(p.far) > 2)
    engine_network = TorchNetwork(network)
    context = finished(BlockCache(engine_network, tokenizer.start_id).context(passage.far, (), []), engine_network)
    hidden, _ = network.read(torch.tensor([passage.near]), context.before)
    logp = network.logits(hidden[0]).log_softmax(-1)
    wanted = torch.stack([-logp[i, token] for i, token in enumerate(passage.near[1:])])
    torch.testing.assert_close(passage_nats(network, [passage], tokenizer.start_id), wanted, atol=1e-4, rtol=1e-4)


def test_a_passage_sees_what_stands_below_its_line_first_and_never_itself(tmp_path):
    lines = "".join(f"value_{n} = compute({n}, offset_{n})\n" for n in range(400))
    tokenizer, steps, _ = drawn(tmp_path, lines, count=6, budgets=((600, 400),))
    found = [passage for step in range(20) for passages in steps[step] for passage in passages]
    assert found
    below = 0
    for passage in found:
        near = tokenizer.decode(list(passage.near))
        blocks = [tokenizer.decode(list(block)) for block in passage.far]
        assert all(near not in block for block in blocks)
        at = lines.index(near)
        following = lines[at + len(near) :].partition("\n")[2]  # the cursor's line is left out
        ahead = [block for block in blocks if block in following]
        assert blocks[: len(ahead)] == ahead  # in front of all others
        assert "".join(reversed(ahead)) == following[: sum(map(len, ahead))]  # the nearest last
        assert all(block in lines[:at] for block in blocks[len(ahead) :] if not block.startswith("# path"))
        below += bool(ahead)
    assert 0.5 < below / len(found) < 1.0


def test_the_same_step_has_the_same_passages(tmp_path):
    _, steps, file = drawn(tmp_path)
    _, again, _ = drawn(tmp_path)
    assert steps[3] == again[3]
    assert steps.passages(file, [], random.Random(1), (600, 400)) != steps.passages(
        file, [], random.Random(2), (600, 400)
    )


def test_an_exported_reader_is_a_base_that_reads_as_it_was_trained(run, tmp_path, capsys):
    run.leg(3)
    export(tmp_path / "base", run.folder, tmp_path / "taught", "unused")
    assert "MB reader" in capsys.readouterr().out
    passages, start = run.steps[0][0], run.tokenizer.start_id
    taught = decoder_weights.load(tmp_path / "taught", torch.float32, CPU)
    plain = decoder_weights.load(tmp_path / "base", torch.float32, CPU)
    change = run.mean["layers.1.down.up"] @ run.mean["layers.1.down.down"]
    added = taught.layers[1].down.weight - plain.layers[1].down.weight
    torch.testing.assert_close(added, change, atol=0.02 * float(change.abs().max()), rtol=0.02)
    with run._averaged(), torch.no_grad():
        wanted = passage_nats(run.network, passages, start)
        torch.testing.assert_close(passage_nats(taught, passages, start), wanted, atol=0.3, rtol=0.05)


def test_a_writer_is_trained_on_a_taught_reader_and_both_are_exported(run, tmp_path):
    run.leg(2)
    export(tmp_path / "base", run.folder, tmp_path / "taught", "unused")
    writer = training_data.WriterRun(tmp_path / "taught", tmp_path / "corpus", tmp_path / "writer", PLAN, CPU)
    taught = decoder_weights.load(tmp_path / "taught", torch.bfloat16, CPU)
    assert torch.equal(writer.network.layers[0].qkv.weight.bfloat16(), taught.layers[0].qkv.weight)
    writer.save()
    export(tmp_path / "taught", writer.folder, tmp_path / "model", "toy model")
    engine = tiny.load(tmp_path / "model")
    assert torch.equal(
        engine.reader.decoder.layers[1].down.weight,  # type: ignore[attr-defined]
        decoder_weights.load(tmp_path / "taught", torch.float32, CPU).layers[1].down.weight,  # type: ignore[attr-defined]
    )
    assert engine.fill(FillRequest(near="def add_", max_slots=4)).steps >= 1


def test_a_reader_that_was_taught_already_is_not_exported_over(run, tmp_path):
    run.leg(1)
    export(tmp_path / "base", run.folder, tmp_path / "taught", "unused")
    with pytest.raises(ModelCorrupt, match="trained already"):
        export(tmp_path / "taught", run.folder, tmp_path / "twice", "unused")


def test_a_run_of_a_reader_is_not_gone_on_with_as_a_writers(run, tmp_path):
    run.leg(1)
    with pytest.raises(ModelCorrupt, match="trains a reader, not a writer"):
        training_data.run(tmp_path, name="reader")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda state: state.pop("layers.0.out.up"), "lacks layers.0.out"),
        (lambda state: state.update({"layers.1.qkv.up": torch.zeros(3, 2)}), "do not belong together"),
        (lambda state: state["layers.1.qkv.up"].fill_(float("nan")), "not finite"),
    ],
)
def test_a_damaged_change_is_refused(run, tmp_path, damage, told):
    run.leg(1)
    export(tmp_path / "base", run.folder, tmp_path / "taught", "unused")
    state = load_file(tmp_path / "taught" / weights.READER_FILE)
    damage(state)
    save_file(state, tmp_path / "taught" / weights.READER_FILE)
    with pytest.raises(ModelCorrupt, match=told):
        decoder_weights.load(tmp_path / "taught", torch.float32, CPU)


def test_validation_is_of_held_out_text_by_the_running_mean(tmp_path):
    held_out = training_data.corpus(tmp_path / "held_out")
    run = reader_run(tmp_path, replace(PLAN, minutes=4, learning_rate=0.1), validation=held_out, validation_gaps=8)
    before = run.validated()
    assert before == run.validated()
    run.leg(4)
    rows = [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]
    told = [row["validation"] for row in rows if "validation" in row]
    assert told[0] == before
    assert told[-1]["nats"] != before["nats"]


def test_on_a_gpu_nothing_is_compiled_for_shapes_that_do_not_come_again(tmp_path):
    given = ["--base", tmp_path, "--corpus", tmp_path, "--run", tmp_path, "--device", "cuda"]
    setup = setup_of(reader.options().parse_args([str(each) for each in given]))
    assert (setup.compiled, setup.packed) == (False, True)
    assert setup_of(parser(None).parse_args([str(each) for each in given])).compiled


def test_the_options_become_a_run(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(ReaderRun, "leg", lambda self, minutes: seen.append((self, minutes)))
    base, corpus = training_data.base(tmp_path / "base"), training_data.corpus(tmp_path / "corpus")
    options = ["--base", base, "--corpus", corpus, "--run", tmp_path / "run", "--device", "cpu", "--leg", 9]
    assert reader.main([str(option) for option in options]) == 0
    ((run, minutes),) = seen
    assert (minutes, run.plan.rank, run.plan.files, run.plan.gaps) == (9, 16, 1, 12)
