"""The training loop lowers the loss, and the engine computes what was trained."""

import random

import gguf
import numpy as np
import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.device.torch_network import TorchNetwork
from mercury_engine.errors import RequestError
from mercury_engine.models import decoder_weights, weights
from mercury_engine.models.network import ForwardRequest
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_lab.engine import Engine, finished
from mercury_lab.training import adapt
from mercury_lab.training.adapt import Plan, export, start_of, train
from mercury_lab.training.commits import commit_edit
from mercury_lab.training.examples.masked import MaskedTokens, canvas
from mercury_lab.training.examples.requests import Layouter
from mercury_lab.training.rows import Rows, nats, predictions, rows_of
from mercury_lab.training.transformer import causal_model, factors, put_factors, with_change

from tests.support import tiny, tiny_gguf, training_data

REQUEST = FillRequest(
    near="def add(a, b):\n    total = ",
    far=("import os\n\n\n", "def name():\n    return 1\n\n\n"),
    suffix=(" + b\n    return total\n", "\n\ndef last():\n    pass\n"),
)

FAMILIES = {"llama": {}, "qwen2": {"attention_bias": True}, "qwen3": {"qk_norm": True}}


@pytest.fixture
def base(tmp_path):
    return tiny.folder(tmp_path / "base", rank=0, markers=tiny.QWEN_MARKERS, **tiny.WIDE)


def disturbed(base, rank=3):
    """The base with a random change."""
    made, rng = with_change(causal_model(base), rank), np.random.default_rng(1)
    put_factors(made, {name: 0.1 * rng.normal(size=each.shape) for name, each in factors(made).items()})
    return made


def learned(base, sample, steps=12):
    """The mean losses of the first and last steps, and the trained model."""
    model = with_change(causal_model(base), 4)
    losses = list(train(model, sample, start_of(base), Plan(steps, learning_rate=3e-2)))
    assert len(losses) == steps
    return np.mean(losses[:2]), np.mean(losses[-2:]), model


def gaps_of(base, tmp_path):
    """Always the same gaps, so that the loss depends on what was learned alone."""
    corpus = training_data.corpus(tmp_path / "corpus")
    drawn = adapt.sampler("gaps", base, corpus, gaps=3)(random.Random(2))
    assert len(drawn) == 3
    return lambda rng: drawn


def test_the_loss_falls_and_only_the_change_is_learned(base, tmp_path):
    before = causal_model(base).state_dict()
    first, last, model = learned(base, gaps_of(base, tmp_path))
    assert last < 0.7 * first
    after = model.unload().state_dict()
    assert all(torch.equal(after[name], each) for name, each in before.items())


@tiny.needs_kernels
@pytest.mark.parametrize("family", FAMILIES)
def test_the_c_kernels_answer_as_the_trained_model(family, tmp_path):
    base = tiny.folder(tmp_path / "base", rank=0, markers=tiny.QWEN_MARKERS, **tiny.WIDE, **FAMILIES[family])
    model = disturbed(base)
    example = Layouter(Tokenizer(base)).gap(REQUEST, "a")
    assert len(example.far) == 4 and example.head
    with torch.no_grad():
        rows, start = rows_of(example), start_of(base)
        expected, _ = nats(model, rows, start)
        with model.disable_adapter():
            plain, _ = nats(model, rows, start)
    export(model, "gaps", base, base)
    engine = Engine.load(base, device="cpu", backend="native", threads=1)

    def of_engine(adapter: str):
        before = finished(engine.cache.context(list(example.far), (*example.head, 0), []), engine.reader).before
        request = ForwardRequest(np.array(rows.ids), before, len(example.head), adapter=adapter)
        [(hidden, _)] = engine.reader.read_together([request])
        logp = engine.reader.log_probabilities(hidden)
        return [-float(logp[row][token]) for row, token, _ in rows.predicted]

    assert np.abs(expected.numpy() - plain.numpy()).max() > 0.5
    np.testing.assert_allclose(of_engine(""), plain.numpy(), atol=0.3)  # eight-bit activations
    np.testing.assert_allclose(of_engine("gap"), expected.numpy(), atol=0.3)


def test_a_gguf_file_is_a_base(tmp_path):
    file = tmp_path / "q.gguf"
    tiny_gguf.write(file, gguf.GGMLQuantizationType.Q8_0)
    ids = np.array([3, 7, 11, 5])
    with torch.no_grad():
        found = causal_model(file)(input_ids=torch.from_numpy(ids)[None]).logits[0]
    network = TorchNetwork(decoder_weights.load(file, torch.float32, torch.device("cpu")))
    [(hidden, _)] = network.read_together([ForwardRequest(ids)])
    torch.testing.assert_close(found, network.decoder.logits(hidden), atol=1e-4, rtol=1e-4)


def test_a_model_taught_to_denoise_denoises_in_the_engine(tmp_path):
    base = tiny.folder(tmp_path / "base", rank=0, vocab_size=502)
    tokens = MaskedTokens.of(Tokenizer(base), 502)
    rng = random.Random(1)
    canvases = [canvas(range(5, 20), range(40, 44), range(60, 70), tokens, rng) for _ in range(4)]
    drawn = [rows_of(each) for each in canvases if each is not None]
    first, last, model = learned(base, lambda rng: drawn)
    assert last < 0.7 * first
    export(model, "masked", base, tmp_path / "out")
    engine = Engine.load(tmp_path / "out", device="cpu", dtype=torch.float32)
    attention = engine.reader.config.masked_attention
    assert attention is not None and (attention.mask_id, attention.expand_id, attention.delete_id) == (501, 500, 0)
    ids = drawn[0].ids
    with torch.no_grad():
        expected = predictions(model, Rows(ids, tuple((row, 0, 1.0) for row in range(len(ids))), sees_all=True), 0)
    [(hidden, _)] = engine.reader.read_together([ForwardRequest(np.array(ids), block=None)])
    found = engine.reader.log_probabilities(hidden)
    np.testing.assert_allclose(found, expected.log_softmax(-1).numpy(), atol=1e-3)


def test_models_that_cannot_be_trained_are_refused(base, tmp_path):
    taught = tmp_path / "taught"
    export(with_change(causal_model(base), 2), "masked", base, taught)
    writer = tiny.folder(tmp_path / "writer", rank=2, **tiny.WIDE)
    granite = tiny.folder(tmp_path / "granite", rank=0, residual_multiplier=0.2, **tiny.WIDE)
    for folder in (taught, writer, granite):
        with pytest.raises(RequestError, match="name "):
            causal_model(folder)


def test_the_command_learns_from_commits_and_measures(base, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(adapt, "HELD_OUT_WINDOWS", 2)
    commits = tmp_path / "commits"
    commits.mkdir()
    for split in ("training", "validation"):
        commit_edit.write(commits / f"{split}.jsonl.gz", [training_data.commit()])
    folders = ["--base", base, "--data", commits, "--held-out", commits, "--out", tmp_path / "out"]
    more = ["--examples", "edits", "--steps", "6", "--rank", "2", "--learning-rate", "0.01"]
    assert adapt.main([*map(str, folders), *more]) == 0
    measured = [float(line.split()[2]) for line in capsys.readouterr().out.splitlines() if line.startswith("held out")]
    assert measured[1] < measured[0]
    assert [*weights.read_adapters(tmp_path / "out", weights.read_config(base))] == ["edit"]
