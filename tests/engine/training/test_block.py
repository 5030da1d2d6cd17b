"""A tiny block drafter: what a block sees, what it learns from, how it begins, and runs that train it."""

import random
from dataclasses import replace

import pytest
import torch
from mercury_engine.engine import Engine
from mercury_engine.models import decoder_weights
from mercury_engine.training.block.drafter import BlockDrafter, BlockRows, BlockShape
from mercury_engine.training.block.loss import agreeing_rows, block_loss
from mercury_engine.training.block.run import BlockRun, block_parser
from mercury_engine.training.block.start import BlockStart, frequent_tokens
from mercury_engine.training.conversion.export import export
from mercury_engine.training.drafting.canvases import read_window
from mercury_engine.training.drafting.windows import DraftingSettings, Window
from mercury_engine.training.optimisation.plan import Setup

from tests.support import tiny, training_data
from tests.support.training_data import PLAN, Clock

CPU = torch.device("cpu")
SETTINGS = DraftingSettings(slots=4, places=5, tokens=60, min_prefix=8)
SHAPE = BlockShape(slots=3, seen=16, rank=4)
FIRST = BlockStart(vocabulary=300, counted=8, fitted=4)
START = 0


@pytest.fixture
def reader():
    return tiny.network(rank=0).requires_grad_(False)


@pytest.fixture
def block(reader):
    made = BlockDrafter(reader, torch.arange(1, 500, 2), SHAPE)
    with torch.no_grad():
        for parameter in (made.fuse, made.places, made.after):
            parameter.normal_(std=0.1)
    return made


def drawn(seed=0, tokens=40, places=(8, 9, 20, 33)):
    rng = random.Random(seed)
    return Window(tuple(rng.randrange(1, 500) for _ in range(tokens)), places)


def block_run(folder, plan=PLAN, **setup):
    if not (folder / "base").exists():
        training_data.base(folder / "base")
        training_data.corpus(folder / "corpus")
    made = Setup(**({"clock": Clock()} | setup))
    paths = folder / "base", folder / "corpus", folder / "run"
    return BlockRun(*paths, plan, CPU, setup=made, settings=SETTINGS, shape=SHAPE, start=FIRST)


def test_a_block_among_others_drafts_what_it_drafts_alone(reader, block):
    window = drawn()
    reading = read_window(reader, window, START)
    known = torch.tensor([5, 6, 7, 8])
    together = block(reader, reading, BlockRows.whole(torch.tensor(window.places), known, 3)).view(4, 3, -1)
    for number, place in enumerate(window.places):
        rows = BlockRows.whole(torch.tensor([place]), known[number : number + 1], 3)
        torch.testing.assert_close(together[number], block(reader, reading, rows), rtol=1e-4, atol=1e-5)


def test_a_block_sees_nothing_after_its_place_and_nothing_too_far_before(reader, block):
    """The reader's states are given: those outside 16 tokens are replaced by noise."""
    window = drawn(places=(30,))
    reading, other = (read_window(reader, window, START) for _ in range(2))
    for tensor in (other.segment.keys, other.segment.values):
        tensor[:, :, :, : 1 + 15] = 9.0
        tensor[:, :, :, 1 + 31 :] = 9.0
    rows = BlockRows.whole(torch.tensor([30]), torch.tensor([7]), 3)
    torch.testing.assert_close(block(reader, other, rows), block(reader, reading, rows))


def test_drafts_are_tokens_of_the_vocabulary_drawn_behind_one_another(reader, block):
    window = drawn()
    reading = read_window(reader, window, START)
    places, known = torch.tensor(window.places), torch.tensor([5, 6, 7, 8])
    found = block.draft(reader, reading, places, known)
    assert bool((found % 2 == 1).all())
    hidden = block(reader, reading, BlockRows.whole(places, known, 3)).view(4, 3, -1)
    for slot, before in ((1, found[:, 0]), (2, found[:, 1])):
        logits = block.logits(reader, hidden[:, slot], before, torch.tensor([slot] * 4))
        assert torch.equal(found[:, slot], block.vocabulary[logits.argmax(-1)])


def test_a_row_learns_while_the_text_is_what_the_reader_chooses():
    tokens = torch.tensor([1, 2, 3, 4, 5, 6])
    choices = torch.tensor([2, 3, 4, 9, 6, 7])
    rows = agreeing_rows(torch.tensor([0, 1]), tokens, choices, 3)
    assert list(zip(rows.block.tolist(), rows.slot.tolist(), strict=True)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert rows.known.tolist() == [2, 3]


def test_only_the_drafter_has_gradients(reader, block):
    window = drawn()
    reading = read_window(reader, window, START)
    loss, figures = block_loss(block, reader, window, reading, reader.logits(reading.hidden))
    loss.backward()
    assert all(p.grad is None for p in reader.parameters())
    assert all(p.grad is not None for p in (block.fuse, block.layer.qkv.weight, block.norm, block.after))
    assert float(loss.detach()) == pytest.approx(figures["truth"] + 0.5 * figures["distance"], rel=1e-4)


def test_the_vocabulary_is_of_frequent_tokens():
    windows = [Window((7, 7, 3, 3, 3, 3, 9), ()), Window((5, 9, 9), ())]
    assert frequent_tokens(windows, 2).tolist() == [3, 9]


def test_a_run_begins_nearer_to_the_reader_than_zero_and_learns(tmp_path):
    run = block_run(tmp_path, replace(PLAN, learning_rate=1e-2))
    assert all(name.startswith("block.") for name in run.trained)
    run.step = 30  # after the warm-up
    found = [run.one_step(run.steps[0]) for _ in range(25)]
    assert found[0]["distance"] < 1
    assert found[-1]["loss"] < 0.9 * found[0]["loss"]


def test_a_run_resumes_with_the_same_vocabulary_and_weights(tmp_path):
    run = block_run(tmp_path, replace(PLAN, minutes=4))
    run.leg(2)
    again = block_run(tmp_path, replace(PLAN, minutes=4))
    assert again.step == run.step
    assert torch.equal(again.block.vocabulary, run.block.vocabulary)
    for name, parameter in again.trained.items():
        torch.testing.assert_close(parameter, run.trained[name])


def test_drafts_are_measured_behind_the_readers_next_token(tmp_path):
    run = block_run(tmp_path, validation=tiny.HELD_OUT, validation_gaps=56)
    found = run.validated()
    assert found["places"] == 56
    assert found["both"] >= max(found["block"], found["repeat"])
    assert len(found["slots"]) == 3


@tiny.needs_kernels
def test_the_kernels_read_for_a_run(tmp_path):
    tiny.folder(tmp_path / "base", rank=0, **tiny.WIDE)
    training_data.corpus(tmp_path / "corpus")
    paths = tmp_path / "base", tmp_path / "corpus", tmp_path / "run"
    run = BlockRun(
        *paths, PLAN, CPU, setup=Setup(clock=Clock()), settings=SETTINGS, shape=SHAPE, start=FIRST, kernels=True
    )
    assert run.one_step(run.steps[0])["loss"] > 0


@tiny.needs_kernels
def test_a_run_is_exported_to_a_file_that_the_engine_drafts_with(tmp_path):
    base = tiny.folder(tmp_path / "base", rank=0, **tiny.WIDE)
    training_data.corpus(tmp_path / "corpus")
    paths, plan = (tmp_path / "base", tmp_path / "corpus", tmp_path / "run"), replace(PLAN, minutes=4)
    shape = replace(SHAPE, rank=32)
    run = BlockRun(*paths, plan, CPU, setup=Setup(clock=Clock()), settings=SETTINGS, shape=shape, start=FIRST)
    run.leg(2)
    export(base, run.folder, base, "tiny")
    (base / "settings.json").write_text('{"rule": {"drafts": "block"}}')
    engine = Engine.load(base, device="cpu", threads=1)
    drafter = engine.denoiser.draft_choice.drafter
    assert drafter.slots == 3 and drafter.vocabulary.tolist() == run.block.vocabulary.tolist()


def test_features_begin_with_a_root_mean_square_of_one(tmp_path):
    run = block_run(tmp_path)
    window = next(run._windows(1))
    found = run.block.features(
        run.network, run.networks.read(window), torch.arange(40), torch.tensor(window.tokens[1:41])
    )
    assert float(found.detach().square().mean().sqrt()) == pytest.approx(1, rel=0.3)


def test_the_reader_of_a_run_is_that_of_its_base(tmp_path):
    run = block_run(tmp_path, replace(PLAN, minutes=4))
    run.leg(2)
    base = dict(decoder_weights.load(tmp_path / "base", torch.float32, CPU).named_parameters())
    kept = {name: p for name, p in run.network.named_parameters() if name.startswith("layers.")}
    assert kept
    for name, parameter in kept.items():
        torch.testing.assert_close(parameter.float(), base[name], rtol=1e-2, atol=1e-2)


def test_options_of_the_recipe():
    given = block_parser().parse_args(["--base", "b", "--corpus", "c", "--run", "r"])
    assert (given.learning_rate, given.files, given.places, given.kernels) == (6e-4, 3, 192, False)
