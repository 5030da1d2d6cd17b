"""Adapters: what they learn from, that training sees what the engine computes, and which files are refused."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.errors import ModelCorrupt, RequestError
from mercury_engine.models import weights
from mercury_engine.models.network import ForwardRequest
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_lab.engine import Engine
from mercury_lab.training.conversion.adapter_file import write_adapter
from mercury_lab.training.examples.gaps import GapSettings
from mercury_lab.training.examples.requests import (
    EditExamples,
    Layouter,
)
from safetensors.numpy import load_file, save_file

from tests.support import tiny, training_data
from tests.support.scoring import scored

pytestmark = tiny.needs_kernels

REQUEST = FillRequest(
    near="def add(a, b):\n    total = ",
    far=("import os\n\n\n", "def name():\n    return 1\n\n\n"),
    suffix=(" + b\n    return total\n", "\n\ndef last():\n    pass\n"),
)


@pytest.fixture
def base(tmp_path):
    """A model of plain matrices with a gap format."""
    return tiny.folder(tmp_path / "base", rank=0, markers=tiny.QWEN_MARKERS, **tiny.WIDE)


def native(folder) -> Engine:
    return Engine.load(folder, device="cpu", backend="native", threads=1)


def put_adapter(folder, name="gap", seed=5, scale=0.3, rank=3):
    """Write a random adapter; returns its tensors."""
    config = weights.read_config(folder)
    torch.manual_seed(seed)
    made = tiny.network(rank=rank, seed=seed, vocab_size=config.vocab_size, **tiny.WIDE)
    tensors = {
        key: (scale * parameter.detach()).bfloat16().float().numpy()
        for key, parameter in made.named_parameters()
        if key.endswith((".down", ".up"))
    }
    write_adapter(folder / weights.adapter_file(name), config, tensors)
    return tensors


def nats(folder, request=REQUEST):
    return scored(native(folder), request, ["a"])[0]


def test_a_request_uses_the_adapter_it_names_if_the_model_has_it(base):
    plain = nats(base)
    put_adapter(base, scale=1.0)
    adapted = nats(base)
    assert abs(adapted - plain) > 0.005
    assert nats(base, replace(REQUEST, adapter="")) == plain
    assert nats(base, replace(REQUEST, adapter="edit")) == plain


def test_another_adapter_reads_only_the_rows_behind_the_lines_above_again(base):
    put_adapter(base)
    put_adapter(base, "edit", seed=6)
    engine = native(base)
    found = {name: scored(engine, replace(REQUEST, adapter=name), ["a"])[0] for name in ("gap", "edit", "")}
    assert len({round(value, 3) for value in found.values()}) == 3
    for name, value in found.items():
        assert nats(base, replace(REQUEST, adapter=name)) == pytest.approx(value, abs=0.02)
    fresh = native(base)
    scored(fresh, REQUEST, ["a"])
    read = fresh.cache.tokens_read
    scored(fresh, replace(REQUEST, adapter="edit"), ["a"])
    tokenizer = Tokenizer(base)
    line, rest = "    total = ", " + b\n"
    assert fresh.cache.tokens_read - read <= len(tokenizer.encode(line)) + len(tokenizer.encode(rest)) + 2


def test_typing_on_a_line_reads_one_token_a_key_with_an_adapter_too(base):
    put_adapter(base)
    engine = native(base)
    engine.fill(REQUEST)
    typed = "abs(a) + self.sum"
    read = [engine.fill(replace(REQUEST, near=REQUEST.near + typed[:end])).tokens_read for end in range(len(typed))]
    assert max(read) <= 2
    assert sum(read) > 2


def test_requests_with_different_adapters_run_together_as_alone(base):
    put_adapter(base)
    put_adapter(base, "edit", seed=6)
    network = native(base).reader
    forwards = [
        ForwardRequest(np.arange(3, 3 + n), adapter=name) for n, name in enumerate(("", "gap", "edit", "gap"), 2)
    ]
    together = network.read_together(forwards)
    for (found, _), forward in zip(together, forwards, strict=True):
        [(alone, _)] = network.read_together([forward])
        np.testing.assert_allclose(found, alone, atol=1e-5)


def test_a_gap_at_a_lines_end_ends_with_its_line_breaks_and_any_other_with_the_end_marker(base):
    layouter = Layouter(Tokenizer(base))
    line, encode = "    total = ", layouter.tokenizer.encode
    at_end, inside = layouter.gap(REQUEST, "a", "\n\n"), layouter.gap(REQUEST, "a")
    assert at_end.target == tuple(encode(line + "a\n\n"))
    assert inside.target == (*encode(line + "a"), layouter.markers.end)
    for each in (at_end, inside):
        assert each.scored == len(each.target) - len(encode(line)) and len(each.weights) == len(each.target)


SPANS = GapSettings(prefix_chars=400, suffix_chars=200)


def test_edits_show_the_steps_made_and_ask_for_the_next_one_or_for_none(base):
    tokenizer = Tokenizer(base)
    examples = EditExamples(tokenizer, [training_data.commit()], SPANS)
    found = [each for seed in range(12) for each in examples.sample(random.Random(seed))]
    texts = [(tokenizer.decode(list(e.far[-1])), tokenizer.decode(list(e.target[:-1]))) for e in found]
    assert all("old version of the next lines" in region for region, _ in texts)
    quiet = [region for region, text in texts if region.endswith(text)]
    assert 0.15 < len(quiet) / len(texts) < 0.7
    assert any("number" in text and "number" not in region for region, text in texts)
    assert all(e.target[-1] == tokenizer.markers.end for e in found)


def test_a_model_without_a_gap_format_is_refused(tmp_path):
    with pytest.raises(RequestError, match="gap format"):
        Layouter(Tokenizer(tiny.folder(tmp_path / "plain", rank=0, **tiny.WIDE)))


def test_an_adapter_of_another_model_is_refused(base, tmp_path):
    put_adapter(base)
    other = tiny.folder(tmp_path / "other", rank=0, markers=tiny.QWEN_MARKERS, **(tiny.WIDE | {"num_hidden_layers": 3}))
    (other / weights.adapter_file("gap")).write_bytes((base / weights.adapter_file("gap")).read_bytes())
    with pytest.raises(ModelCorrupt, match="another shape"):
        native(other)


def test_eight_bits_keep_an_adapters_factors_to_half_a_step(base):
    tensors = put_adapter(base)
    [found] = weights.read_adapters(base, weights.read_config(base)).values()
    assert found.names.keys() == tensors.keys()
    for name, factor in tensors.items():
        wanted = factor.astype(np.float32)
        steps = np.abs(wanted).max(1 if name.endswith(".down") else 0, keepdims=True) / 127
        assert (np.abs(found.matrix(name).floats() - wanted) <= 0.52 * steps + 1e-7).all()


def test_an_adapter_with_scales_that_are_not_finite_is_refused(base):
    put_adapter(base)
    path = base / weights.adapter_file("gap")
    stored = load_file(path)
    stored["layers.1.out.up.scale"] = stored["layers.1.out.up.scale"] * np.float16("nan")
    save_file(stored, path, {"format": weights.ADAPTER_FORMAT, "base": weights.base_shape(weights.read_config(base))})
    with pytest.raises(ModelCorrupt, match="not finite"):
        native(base)


def test_an_adapter_that_lacks_a_factor_or_its_scale_is_refused(base):
    put_adapter(base)
    path = base / weights.adapter_file("gap")
    header = {"format": weights.ADAPTER_FORMAT, "base": weights.base_shape(weights.read_config(base))}
    whole = load_file(path)
    for missing, said in (("layers.1.out.up.scale", r"layers\.1\.out\.up\.scale"), ("layers.1.out.up", "missing")):
        save_file({name: each for name, each in whole.items() if name != missing}, path, header)
        with pytest.raises(ModelCorrupt, match=said):
            native(base)


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"\xff" * 64], ids=["empty", "zeros", "noise"])
def test_a_damaged_adapter_is_refused(base, content):
    (base / weights.adapter_file("gap")).write_bytes(content)
    with pytest.raises(ModelCorrupt, match="cannot be read"):
        native(base)
