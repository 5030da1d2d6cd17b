"""The block drafter on the C kernels: the numbers of the one that was trained, its file, and fills with it."""

import json

import numpy as np
import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.engine import Engine
from mercury_engine.errors import ModelCorrupt
from mercury_engine.models import decoder_weights, drafter_file, weights
from mercury_engine.models.arrays import log_softmax
from mercury_engine.models.cpu import CpuNetwork, layers_for
from mercury_engine.models.drafter import CpuDrafter
from mercury_engine.models.network import ForwardRequest, KeyValueSegment, ReaderState
from mercury_engine.training.block.drafter import BlockRows
from mercury_engine.training.drafting.canvases import read_window
from mercury_engine.training.drafting.windows import Window
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from mercury_lsp.installed_models import checking
from tests.support import drafter as drafters
from tests.support import tiny

pytestmark = tiny.needs_kernels

VOCABULARY = torch.arange(1, 500, 2)
IDS = np.arange(40) * 7 % 499 + 1


@pytest.fixture
def folder(tmp_path):
    return drafted(tmp_path / "model")


def drafted(path, **changes):
    """A tiny model folder with a random drafter, used by its settings."""
    tiny.folder(path, rank=0, **tiny.WIDE, **changes)
    reader = decoder_weights.load(path, torch.float32, torch.device("cpu"))
    drafters.write(path, drafters.random_drafter(reader, VOCABULARY))
    (path / "settings.json").write_text(json.dumps({"rule": {"drafts": "block"}}))
    return path


def as_stored(made, path, config):
    """The trained drafter with the weights that its file holds."""
    stored = load_file(path)
    names = {"layer.qkv": "qkv", "layer.out": "out", "layer.gate_up": "gate_up", "layer.down": "down"}
    with torch.no_grad():
        for part, name in names.items():
            made.get_submodule(part).weight.copy_(torch.from_numpy(weights.unpack(stored, name, path)))
        made.fuse.copy_(torch.from_numpy(weights.unpack(stored, "fuse", path)).view_as(made.fuse))
        made.before.copy_(torch.from_numpy(weights.unpack(stored, "before", path)))
        made.after[VOCABULARY] = torch.from_numpy(weights.unpack(stored, "after", path))
    return made


def test_the_kernels_draft_what_the_trained_drafter_drafts(folder):
    config = weights.read_config(folder)
    network = CpuNetwork(folder, config, layers_for(config, 1))
    found = CpuDrafter(drafter_file.read(folder, config), network)
    reader = decoder_weights.load(folder, torch.float32, torch.device("cpu"))
    trained = as_stored(drafters.random_drafter(reader, VOCABULARY), folder / drafter_file.FILE, config)
    place, known = 30, 7
    [(_, start)] = network.read_together([ForwardRequest(np.array([0]))])
    first = network.rotated(start, -1)
    [(hidden, block)] = network.read_together([ForwardRequest(IDS, [first])])
    side = network.rotated(block, 0)
    kept = KeyValueSegment(side.keys[:, :, :, : place + 1], side.values[:, :, :, : place + 1])
    state = ReaderState(hidden[place], block.values[:, 0, :, place], [first, kept], place)
    drawn = found.denoise(state, known)

    reading = read_window(reader, Window(tuple(IDS.tolist()), (place,)), 0)
    rows = BlockRows.whole(torch.tensor([place]), torch.tensor([known]), drafters.SHAPE.slots)
    with torch.no_grad():
        hidden_SC = trained(reader, reading, rows)
        before = torch.tensor([known, 9, 11])
        expected = trained.logits(reader, hidden_SC, before, rows.slot).log_softmax(-1).numpy()
    for slot in range(drafters.SHAPE.slots):
        every = [drawn.best(slot, int(before[slot]), int(token))[2] for token in VOCABULARY]
        assert np.corrcoef(every, expected[slot])[0, 1] > 0.98
        token, logp, _ = drawn.best(slot, int(before[slot]), None)
        assert logp == pytest.approx(max(every), abs=1e-4) and token == int(VOCABULARY[int(np.argmax(every))])
    assert drawn.best(0, known, 2)[2] == -np.inf  # an even token, which it lacks


def test_fills_with_a_random_drafter_are_those_without(folder):
    engine = Engine.load(folder, device="cpu", threads=1)
    choice, asked = engine.denoiser.draft_choice, []
    denoise = choice.drafter.denoise
    choice.drafter.denoise = lambda *given: (asked.append(given), denoise(*given))[1]
    for at in range(60, 900, 28):
        request = FillRequest(near=tiny.SAMPLE[:at], suffix=(tiny.SAMPLE[at:],), max_slots=16, multiline=True)
        with_block = engine.fill(request)
        engine.denoiser.draft_choice = None
        without = engine.fill(request)
        engine.denoiser.draft_choice = choice
        assert with_block.text == without.text
    assert len(asked) > 20


def test_settings_without_a_file_draft_from_the_context(folder):
    (folder / drafter_file.FILE).unlink()
    assert Engine.load(folder, device="cpu", threads=1).denoiser.draft_choice is None


def test_a_file_that_the_settings_do_not_name_is_not_used(folder):
    (folder / "settings.json").write_text(json.dumps({"rule": {"drafts": "context"}}))
    assert Engine.load(folder, device="cpu", threads=1).denoiser.draft_choice is None


def test_torch_runs_without_a_drafter(folder):
    assert tiny.load(folder).denoiser.draft_choice is None


def test_costs_are_measured_while_the_engine_rests(folder):
    engine = Engine.load(folder, device="cpu", threads=1)
    before = engine.denoiser.draft_choice.costs
    for _ in range(3):
        engine.rest()
    assert engine.denoiser.draft_choice.costs is before
    engine.rest()
    costs = engine.denoiser.draft_choice.costs
    assert costs is not before
    assert 0.03 <= costs.row <= 0.4 and 0.03 <= costs.block <= 0.4
    engine.rest()
    assert engine.denoiser.draft_choice.costs is costs


def damaged(folder, change, **metadata):
    path = folder / drafter_file.FILE
    with safe_open(path, "np") as opened:
        said = opened.metadata()
    tensors = load_file(path)
    change(tensors)
    path.unlink()
    save_file(tensors, path, said | metadata)
    return folder


def widen(tensors):
    tensors["fuse.q4"] = np.concatenate((tensors["fuse.q4"], tensors["fuse.q4"]))


def spoil(tensors):
    tensors["places"][0, 0] = np.nan


def spoil_scale(tensors):
    tensors["down.scale"][0, 0] = np.inf


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda tensors: tensors.pop("gain"), "lacks gain"),
        (lambda tensors: tensors.pop("before.q8"), "lacks 'before.q8'"),
        (lambda tensors: tensors.pop("fuse.scale"), "fuse"),
        (lambda tensors: tensors.pop("down.q4"), "lacks down"),
        (lambda tensors: tensors.update(gain=np.zeros(9, np.float32)), "gain"),
        (lambda tensors: tensors.update(vocabulary=tensors["vocabulary"][::-1].copy()), "rising list"),
        (lambda tensors: tensors.update(vocabulary=tensors["vocabulary"] + 300), "rising list"),
        (lambda tensors: tensors.update(places=np.zeros((17, 32), np.float32)), "17 slots"),
        (widen, "shape"),
        (spoil, "finite"),
        (spoil_scale, "finite"),
    ],
)
def test_a_damaged_file_is_told_when_the_model_is_loaded_and_by_the_check(folder, change, says):
    damaged(folder, change)
    for look in (lambda: Engine.load(folder, device="cpu", threads=1), lambda: checking.check_values(folder)):
        with pytest.raises(ModelCorrupt, match=says) as error:
            look()
        assert str(folder) in str(error.value)


@pytest.mark.parametrize("metadata", [{"format": "mercury-drafter-9"}, {"base": "{}"}])
def test_a_file_of_another_version_or_model_is_refused(folder, metadata):
    damaged(folder, lambda tensors: None, **metadata)
    with pytest.raises(ModelCorrupt, match="delete it"):
        Engine.load(folder, device="cpu", threads=1)


def test_the_check_reads_the_drafter(folder):
    assert folder / drafter_file.FILE in checking.check_values(folder)


def test_log_probabilities_of_a_block_sum_to_one(folder):
    engine = Engine.load(folder, device="cpu", threads=1)
    block = engine.denoiser.draft_choice.drafter.denoise(_state(engine), 5)
    found = np.array([block.best(1, 5, int(token))[2] for token in VOCABULARY])
    assert np.allclose(log_softmax(found), found, atol=1e-4)


def _state(engine):
    [(hidden, block)] = engine.reader.read_together([ForwardRequest(IDS)])
    return ReaderState(hidden[-1], block.values[:, 0, :, -1], [engine.reader.rotated(block, 0)], len(IDS) - 1)
