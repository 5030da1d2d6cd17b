"""A causal model is taught to denoise: what it learns from, that it learns, and what the engine makes of it."""

import json
import random

import numpy as np
import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.errors import RequestError
from mercury_engine.models import weights
from mercury_engine.models.network import ForwardRequest
from mercury_lab.engine import Engine
from mercury_lab.training.conversion.export import export
from mercury_lab.training.denoiser.canvases import Canvas, MaskedTokens, canvas
from mercury_lab.training.denoiser.run import DenoiserRun
from mercury_lab.training.optimisation.plan import Setup, TrainingPlan

from tests.support import tiny, training_data

TOKENS = MaskedTokens(mask=900, expand=901, delete=902)

PLAN = TrainingPlan(minutes=60, files=1, gaps=4, rank=8, context=96, learning_rate=0.03)


def revealed(found: Canvas) -> list[int]:
    """The text after the masks got their tokens, and expanded ones the two that they stand for."""
    ids, targets = list[int](), {place: token for place, token, _ in found.targets}
    for place, token in enumerate(found.ids):
        wanted = targets.get(place, token)
        if wanted == TOKENS.expand:
            ids += found.clean[found.origins[place] : found.origins[place] + 2]
        elif wanted != TOKENS.delete:
            ids.append(wanted)
    return ids


@pytest.mark.parametrize("seed", range(40))
def test_a_canvas_whose_masks_are_revealed_is_the_text(seed):
    rng = random.Random(seed)
    before, middle, after = list(range(1, 30)), list(range(100, 100 + 1 + seed % 20)), list(range(200, 240))
    whole, found = (canvas(before, middle, after, TOKENS, rng, length) for length in (None, 48))
    for each in filter(None, (whole, found)):
        assert revealed(each) == list(each.clean)
        assert {each.ids[place] for place, _, _ in each.targets} == {TOKENS.mask}
        stands = [(at, origin) for at, origin in enumerate(each.origins) if origin >= 0]
        assert all(each.ids[at] in (TOKENS.mask, each.clean[origin]) for at, origin in stands)
    assert found is None or len(found.ids) == 48


def test_canvases_are_masked_whole_expand_and_delete():
    rng = random.Random(1)
    many = [canvas([1, 2], list(range(100, 110)), [3], TOKENS, rng) for _ in range(200)]
    targets = [[token for _, token, _ in each.targets] for each in many]
    assert 0.2 < sum(TOKENS.expand in each for each in targets) / 200 < 0.9
    assert 0.3 < sum(TOKENS.delete in each for each in targets) / 200 < 0.6
    assert sum(each.ids.count(TOKENS.mask) == len(each.ids) - 3 for each in many) > 40


def test_a_text_that_is_too_short_has_no_canvas():
    assert canvas([1], [2, 3], [4], TOKENS, random.Random(0), 1000) is None


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> DenoiserRun:
    folder = tmp_path_factory.mktemp("denoiser")
    tiny.folder(folder / "base", rank=0, vocab_size=502)
    corpus = training_data.corpus(folder / "corpus")
    setup = Setup(clock=training_data.Clock(), validation=tiny.HELD_OUT, validation_gaps=8, validate_every=60 * 60)
    made = DenoiserRun(folder / "base", corpus, folder / "run", PLAN, torch.device("cpu"), setup=setup)
    made.leg(60)
    return made


def test_it_learns(run):
    rows = [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]
    first, *_, last = [row["validation"] for row in rows if "validation" in row]
    assert first["slots"] == last["slots"] > 0
    assert last["nats"] < 0.95 * first["nats"]


def test_what_is_exported_denoises_in_the_engine(run):
    out, base = run.folder / "out", run.folder.parent / "base"
    export(base, run.folder, out, "Tiny")
    engine = Engine.load(out, device="cpu", dtype=torch.float32)
    attention = engine.reader.config.masked_attention
    assert (attention.mask_id, attention.expand_id, attention.delete_id) == (501, 500, 0)
    assert attention.shifted and attention.block is None
    ids = np.array([5, 9, 501, 501, 7])
    [(found, _)] = engine.reader.read_together([ForwardRequest(ids, block=None)])
    with run._averaged(), torch.no_grad():
        expected, _ = run.network.read(torch.tensor(ids)[None], adapted=True, block=None)
    assert np.asarray(found) == pytest.approx(expected[0].numpy(), abs=0.05)  # stored in bfloat16
    assert engine.fill(FillRequest("def add(", suffix=("):\n",), max_slots=4)).steps > 0


def test_a_model_that_was_trained_on_here_is_refused(tmp_path):
    corpus = training_data.corpus(tmp_path / "corpus")
    tiny.folder(tmp_path / "writer", rank=4)
    with pytest.raises(RequestError, match="name the pretrained causal model"):
        DenoiserRun(tmp_path / "writer", corpus, tmp_path / "run", PLAN, torch.device("cpu"))


def test_tokens_without_a_text_are_masks_and_else_the_last_special_ones(run):
    assert MaskedTokens.of(run.tokenizer, 502) == MaskedTokens(501, 500, 0)
    assert weights.read_config(run.folder.parent / "base").kind == "causal"
