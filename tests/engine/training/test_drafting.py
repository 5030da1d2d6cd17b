"""A tiny writer learns to draft: what a canvas sees, what it is taught, and how its drafts are measured."""

import itertools
import json
import os
import random
import signal
from dataclasses import replace

import pytest
import torch
from mercury_engine.denoising.ngram_lookup import NgramLookup
from mercury_engine.errors import ModelCorrupt
from mercury_engine.models import decoder_weights
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_engine.training.conversion.export import export
from mercury_engine.training.data.corpus import SourceFile
from mercury_engine.training.drafting.canvases import (
    correct_tokens,
    read_window,
    reader_targets,
    text_targets,
    write_drafts,
)
from mercury_engine.training.drafting.loss import drafting_loss
from mercury_engine.training.drafting.measure import draft_figures
from mercury_engine.training.drafting.networks import PRECISIONS, drafting_writer, kernel_reader
from mercury_engine.training.drafting.run import DraftRun, draft_parser
from mercury_engine.training.drafting.windows import (
    DraftingSettings,
    Window,
    held_out_windows,
    sample_window,
    source_files,
)
from mercury_engine.training.optimisation.plan import Setup
from mercury_engine.training.optimisation.run import train_until_terminated
from safetensors.torch import load_file

from tests.support import tiny, training_data
from tests.support.training_data import CODE, PLAN, Clock

CPU = torch.device("cpu")
SETTINGS = DraftingSettings(slots=4, places=5, tokens=60, min_prefix=8)
START = 0


def draft_run(folder, plan=PLAN, name="run", settings=SETTINGS, rank=2, **setup):
    """A run on the toy corpus, of a base with a writer."""
    if not (folder / "base").exists():
        tiny.folder(folder / "base", rank=rank)
        training_data.corpus(folder / "corpus")
    made = Setup(**({"clock": Clock()} | setup))
    return DraftRun(folder / "base", folder / "corpus", folder / name, plan, CPU, setup=made, settings=settings)


@pytest.fixture
def network():
    return tiny.network()


def drawn(seed=0, tokens=40, places=(8, 9, 20, 33)):
    rng = random.Random(seed)
    return Window(tuple(rng.randrange(1, 500) for _ in range(tokens)), places)


def test_a_canvas_among_others_gets_what_the_writer_gives_it_alone(network):
    """One packed pass over all places equals the engine's own call for each."""
    shown = drawn()
    together = write_drafts(network, shown, read_window(network, shown, START), 4)
    mask = network.config.mask_id
    for number, place in enumerate(shown.places):
        before = read_window(network, Window(shown.tokens[:place], ()), START).segment
        ids = torch.tensor([[shown.tokens[place], *[mask] * 4]])
        alone = network.write(ids, [before], [], torch.tensor([place]))[0, :-1]
        torch.testing.assert_close(together[number], alone, rtol=1e-3, atol=1e-4)


def test_a_canvas_sees_nothing_after_its_place(network):
    shown = drawn(places=(12,))
    other = Window((*shown.tokens[:13], *drawn(seed=1).tokens[13:]), (12,))
    first, second = (write_drafts(network, each, read_window(network, each, START), 4) for each in (shown, other))
    torch.testing.assert_close(first, second)


def test_text_targets_are_the_text_and_what_the_reader_expects_there(network):
    shown = drawn()
    reading = read_window(network, shown, START)
    found = text_targets(network, shown, reading, 4)
    assert found.tokens.tolist() == [list(shown.tokens[place + 1 : place + 5]) for place in shown.places]
    ids = torch.tensor([[START, *shown.tokens]])
    torch.testing.assert_close(reading.hidden, network.read(ids)[0][0, 1:], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(found.log_probabilities, network.logits(reading.hidden).log_softmax(-1)[_places(shown)])


def _places(shown):
    return torch.tensor(shown.places)[:, None] + torch.arange(4)


def test_reader_targets_are_the_readers_own_continuation(network):
    shown = drawn()
    found = reader_targets(network, shown, read_window(network, shown, START), 4)
    for number, place in enumerate(shown.places):
        text = [START, *shown.tokens[: place + 1]]
        for slot in range(4):
            logits = network.logits(network.read(torch.tensor([text]))[0][0, -1])
            torch.testing.assert_close(
                found.log_probabilities[number, slot], logits.log_softmax(-1), rtol=1e-3, atol=1e-3
            )
            text.append(int(logits.argmax()))
        assert found.tokens[number].tolist() == text[place + 2 :]


@tiny.needs_kernels
def test_the_kernels_read_what_torch_reads(tmp_path):
    base = tiny.folder(tmp_path, **tiny.WIDE)
    writer, reader = drafting_writer(base, 4, CPU, "float32"), kernel_reader(base)
    shown = drawn()
    plain, fast = read_window(writer, shown, START), read_window(writer, shown, START, reader)
    pairs = (
        (fast.hidden, plain.hidden),
        (fast.segment.keys, plain.segment.keys),
        (fast.segment.values, plain.segment.values),
    )
    assert all(float(torch.cosine_similarity(one, other, -1).mean()) > 0.99 for one, other in pairs)


@tiny.needs_kernels
def test_the_kernels_write_at_many_places_what_they_write_at_one(tmp_path):
    base = tiny.folder(tmp_path, **tiny.WIDE)
    writer, reader, shown = drafting_writer(base, 4, CPU, "float32"), kernel_reader(base), drawn()
    reading = read_window(writer, shown, START, reader)
    found = reader_targets(reader, shown, reading, 4).tokens
    for number, place in enumerate(shown.places):
        ids = list(shown.tokens[: place + 1])
        for slot in range(4):
            logits = reader.logits(reader.read(ids, [reading.start]).hidden[-1:])[0]
            token = int(found[number, slot])
            assert float(logits.max() - logits[token]) < 0.2, "more than the error of eight bits"
            ids.append(token)


@pytest.mark.parametrize("part", ["qkv", "out", "gate_up", "down"])
def test_bfloat16_matrices_give_nearly_the_same_gradients(tmp_path, part):
    base = tiny.folder(tmp_path)
    whole, mixed = (drafting_writer(base, 4, CPU, precision) for precision in PRECISIONS)
    shown = drawn()
    grads = []
    for each in (whole, mixed):
        reading = read_window(each, shown, START)
        loss, _ = drafting_loss(
            each, write_drafts(each, shown, reading, 4), text_targets(each, shown, reading, 4), SETTINGS
        )
        loss.backward()
        grads.append(getattr(each.layers[0], part).up.grad.flatten())
        assert getattr(each.layers[0], part).weight.grad is None
    assert float(torch.cosine_similarity(*grads, dim=0)) > 0.98
    assert set(decoder_weights.adapter_parameters(mixed)) == set(decoder_weights.adapter_parameters(whole))


def test_only_the_writer_has_gradients(network):
    shown = drawn()
    reading = read_window(network, shown, START)
    loss, figures = drafting_loss(
        network, write_drafts(network, shown, reading, 4), reader_targets(network, shown, reading, 4), SETTINGS
    )
    loss.backward()
    assert network.embedding.grad is None
    assert all(layer.qkv.up.grad is not None for layer in network.layers)
    assert float(loss.detach()) == pytest.approx(0.4 * figures["truth"] + 0.6 * figures["divergence"], rel=1e-4)


def test_the_readers_own_predictions_have_no_divergence(network):
    """With the reader's hidden states and a negligible end marker."""
    shown = drawn()
    reading = read_window(network, shown, START)
    with torch.no_grad():
        network.markers[1] = -1e3 * reading.hidden.mean((0,)).sign()
    hidden = reading.hidden[_places(shown)]
    targets = text_targets(network, shown, reading, 4)
    kept = replace(targets, log_probabilities=network.writer_logits(hidden).log_softmax(-1)[..., :-2])
    assert drafting_loss(network, hidden, kept, SETTINGS)[1]["divergence"] == pytest.approx(0, abs=1e-4)


def test_slots_count_less_the_further_ahead_they_are():
    found = DraftingSettings().slot_weights()
    assert sum(found) == pytest.approx(1)
    assert [b / a for a, b in itertools.pairwise(found)] == pytest.approx([0.8] * 5)


def test_figures_compare_the_writer_the_lookup_and_the_better_of_both():
    texts = [[1, 2, 3], [4, 5, 6]]
    found = draft_figures([[1, 2, 9], [9, 5, 6]], texts, [[1], [4, 5]])
    assert (found["writer"], found["repeat"], found["both"], found["places"]) == (1.0, 1.5, 2.0, 2)
    assert found["slots"] == [0.5, 1.0, 0.5]
    assert found["ahead"] == [0.5, 0.5, 0.0]
    assert found["behind_first"] == 1.5


@pytest.mark.parametrize(("draft", "right"), [([], 0), ([1, 2], 2), ([1, 9, 3], 1), ([9], 0), ([1, 2, 3, 4], 3)])
def test_tokens_are_correct_up_to_the_first_that_is_not(draft, right):
    assert correct_tokens([draft], [[1, 2, 3]]) == [right]


def test_windows_are_sampled_from_files_that_are_long_enough(tmp_path):
    tokenizer = Tokenizer(training_data.base(tmp_path))
    file = SourceFile("toy/a.py", "toy", "python", CODE)
    found = [sample_window(tokenizer, file, SETTINGS, random.Random(seed)) for seed in range(20)]
    assert all(each and len(each.tokens) <= 60 and len(set(each.places)) == 5 for each in found)
    assert all(8 <= place < len(each.tokens) - 4 for each in found if each for place in each.places)
    short, settings = replace(file, text=CODE[:40]), replace(SETTINGS, min_prefix=50)
    assert sample_window(tokenizer, short, settings, random.Random(0)) is None


def test_held_out_windows_are_the_same_every_time_and_from_many_packages(tmp_path):
    tokenizer = Tokenizer(training_data.base(tmp_path))
    once, again = (held_out_windows(tokenizer, tiny.HELD_OUT, SETTINGS, 50) for _ in range(2))
    assert once == again
    assert len(once) == 10
    assert len({file.package for file in source_files(tiny.HELD_OUT)[:11]}) == 11


def test_a_folder_without_long_files_is_refused(tmp_path):
    tokenizer = Tokenizer(training_data.base(tmp_path / "base"))
    (tmp_path / "files" / "toy").mkdir(parents=True)
    (tmp_path / "files" / "toy" / "a.py").write_text("a = 1\n")
    with pytest.raises(ModelCorrupt, match="no source file in"):
        held_out_windows(tokenizer, tmp_path / "files", replace(SETTINGS, min_prefix=50), 50)


def test_a_run_starts_from_the_writer_of_its_base_and_learns(tmp_path):
    run = draft_run(tmp_path, replace(PLAN, learning_rate=1e-2), settings=replace(SETTINGS, reader_share=0.0))
    first = load_file(tmp_path / "base" / "adapter.safetensors")
    assert set(run.trained) == set(first)
    assert all(torch.equal(run.trained[name], saved) for name, saved in first.items())
    run.step = 30  # after the warm-up
    found = [run.one_step(run.steps[0])["loss"] for _ in range(25)]
    assert found[-1] < 0.9 * found[0]


def test_a_base_without_a_writer_gets_a_new_one(tmp_path):
    run = draft_run(tmp_path, rank=0)
    assert all(not p.any() for name, p in run.trained.items() if name.endswith(".up"))
    assert run.one_step(run.steps[0])["loss"] > 0


def test_late_in_the_plan_some_targets_are_the_readers_own(tmp_path):
    run = draft_run(tmp_path, replace(PLAN, minutes=10), settings=replace(SETTINGS, reader_share=0.5, reader_from=0.5))
    run.leg(10)
    rows = [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]
    shares = [row["own"] for row in rows]
    assert not any(shares[:5])
    assert any(shares[5:])


def test_a_terminated_run_is_saved_and_resumes(tmp_path):
    plan = replace(PLAN, minutes=6)

    class Terminating(Clock):
        def __call__(self):
            if self.seconds == 120.0:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().__call__()

    run = draft_run(tmp_path, plan, clock=Terminating())
    train_until_terminated(run, 60)
    assert 1 <= run.step < 6
    again = draft_run(tmp_path, plan)
    assert again.step == run.step
    for name, parameter in again.trained.items():
        torch.testing.assert_close(parameter, run.trained[name])
    again.leg(60)
    assert again.elapsed == 360.0


def test_a_longer_plan_extends_a_finished_run(tmp_path):
    draft_run(tmp_path, replace(PLAN, minutes=3, decay_share=1.0)).leg(60)
    longer = draft_run(tmp_path, replace(PLAN, minutes=6, decay_share=1.0))
    assert longer.plan.rate(longer.elapsed, 40) == pytest.approx(PLAN.learning_rate / 2)
    longer.leg(60)
    assert longer.step == 6


def test_drafts_are_measured_on_held_out_files(tmp_path):
    run = draft_run(tmp_path, validation=tiny.HELD_OUT, validation_gaps=20)
    found = run.validated()
    assert found["places"] == 20
    assert found["both"] >= max(found["writer"], found["repeat"])
    shown = run.validation.windows[0]
    own = run.validation.continuations[0][0]
    assert found["slots"][0] >= found["ahead"][1]
    match = NgramLookup().find(shown.tokens[: shown.places[0] + 1])
    assert run.validation.ngram_drafts[0][0] == match.draft[: len(own)]


def test_what_was_learned_is_exported_as_a_model(tmp_path):
    run = draft_run(tmp_path)
    run.leg(2)
    export(tmp_path / "base", tmp_path / "run", tmp_path / "out", "taught")
    taught = decoder_weights.load(tmp_path / "out", torch.float32, CPU)
    for name, parameter in decoder_weights.adapter_parameters(taught).items():
        torch.testing.assert_close(parameter.detach(), run.mean[name], rtol=1e-2, atol=1e-2)


def test_options_of_the_shipped_recipe():
    given = draft_parser().parse_args(["--base", "b", "--corpus", "c", "--run", "r"])
    assert (given.learning_rate, given.files, given.precision, given.decay_share) == (4e-4, 1, None, 0.8)
