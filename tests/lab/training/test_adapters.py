"""Adapters: what they learn from, that training sees what the engine computes, and which files are refused."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.errors import ModelCorrupt, ModelNotFound, RequestError
from mercury_engine.models import adapters, weights
from mercury_engine.models.arrays import bfloat16
from mercury_engine.models.network import ForwardRequest
from mercury_engine.prompt.tokenizer import Tokenizer
from mercury_lab.engine import Engine, finished
from mercury_lab.training.adapters.examples import (
    COPY_WEIGHT,
    FORESEEN_SHARE,
    MAX_EDIT_TOKENS,
    EditExamples,
    Layouter,
    edit_weights,
    kept_tokens,
)
from mercury_lab.training.adapters.run import RUNS, GapAdapterRun, adapter_parser
from mercury_lab.training.commits import commit_edit
from mercury_lab.training.conversion.adapter_file import write_adapter
from mercury_lab.training.conversion.export import export
from mercury_lab.training.examples.gaps import GapSettings
from mercury_lab.training.optimisation.plan import Setup
from safetensors.numpy import load_file, save_file

from tests.support import tiny, training_data
from tests.support.scoring import scored
from tests.support.training_data import PLAN, Clock

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
        key: (scale * parameter.detach().float()).numpy().astype(bfloat16)
        for key, parameter in made.named_parameters()
        if key.endswith((".down", ".up"))
    }
    write_adapter(folder / adapters.file_name(name), config, tensors)
    return tensors


def nats(folder, request=REQUEST):
    return scored(native(folder), request, ["a"])[0]


def test_a_request_uses_the_adapter_it_names_if_the_model_has_it(base):
    plain = nats(base)
    put_adapter(base)
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


def gap_run(folder, base, plan=PLAN, name="run", kernels=True, parent=None, **setup):
    if not (folder / "corpus").exists():
        training_data.corpus(folder / "corpus")
    made = Setup(**({"clock": Clock()} | setup))
    options = {"setup": made, "precision": "float32", "kernels": kernels, "parent": parent}
    return GapAdapterRun(base, folder / "corpus", folder / name, plan, torch.device("cpu"), **options)


def test_training_computes_what_the_engine_does_with_the_adapter(base, tmp_path):
    tensors = put_adapter(base)
    run = gap_run(tmp_path, base, replace(PLAN, rank=3))
    with torch.no_grad():
        for name, parameter in run.trained.items():
            parameter.copy_(torch.from_numpy(tensors[name].astype(np.float32)))
    example = Layouter(run.tokenizer).gap(REQUEST, "a")
    with torch.no_grad():
        nats = run._nats([example])
    engine = native(base)
    cut = engine.decoder.contexts.cut(REQUEST)
    around = finished(engine.decoder.contexts.read(REQUEST, [*cut.read, *cut.known], 0), engine.reader)
    assert (*example.head, *example.markers) == around.near[: len(example.head) + len(example.markers)]
    line = run.tokenizer.encode("    total = a")
    assert example.target == (*line, run.tokenizer.markers.end)
    [row] = engine.reader.read_together(
        [
            ForwardRequest(
                np.array([*example.markers, *example.target[:-1]]),
                _before(engine, example),
                len(example.head),
                adapter="gap",
            )
        ]
    )
    logp = engine.reader.log_probabilities(row[0])[-len(example.target) :]
    expected = [-float(logp_V[token]) for logp_V, token in zip(logp, example.target, strict=True)]
    np.testing.assert_allclose(nats.numpy(), expected, atol=0.3)  # eight-bit activations


def test_a_gap_at_a_lines_end_ends_with_its_line_breaks_and_any_other_with_the_end_marker(base, tmp_path):
    layouter = Layouter(gap_run(tmp_path, base, replace(PLAN, rank=3)).tokenizer)
    line, encode = "    total = ", layouter.tokenizer.encode
    at_end, inside = layouter.gap(REQUEST, "a", "\n\n"), layouter.gap(REQUEST, "a")
    assert at_end.target == tuple(encode(line + "a\n\n"))
    assert inside.target == (*encode(line + "a"), layouter.markers.end)
    for each in (at_end, inside):
        assert each.scored == len(each.target) - len(encode(line)) and len(each.weights) == len(each.target)


def test_a_batch_of_examples_computes_what_each_does_alone(base, tmp_path):
    run = gap_run(tmp_path, base, replace(PLAN, rank=3), kernels=False)
    with torch.no_grad():
        for parameter in run.trained.values():
            parameter.copy_(0.3 * torch.randn_like(parameter))
    layouter = Layouter(run.tokenizer)
    line = replace(REQUEST, near="total = ", far=(), suffix=(" + b\n",))
    longer = replace(REQUEST, far=(*REQUEST.far, training_data.NAMES[:300]))
    examples = [layouter.gap(REQUEST, "a"), layouter.gap(line, "first_name(a)"), layouter.gap(longer, "name()")]
    assert len({len(each.head) for each in examples}) > 1
    together = run._nats(examples)
    alone = torch.cat([run._nats([each]) for each in examples])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)
    read = gap_run(tmp_path, base, replace(PLAN, rank=3), "read by the kernels")
    read._copy(run.trained, read.trained, base)
    kernels = torch.cat([read._nats([each]) for each in examples])
    torch.testing.assert_close(together, kernels, atol=0.3, rtol=0)  # eight-bit activations


def test_a_run_that_reads_in_batches_learns_in_one_pass_a_step(base, tmp_path):
    run = gap_run(tmp_path, base, replace(PLAN, minutes=14, rank=4, learning_rate=1e-2, gaps=4, files=3), kernels=False)
    passes = []
    run._nats = lambda examples, nats=run._nats: passes.append(len(examples)) or nats(examples)
    run.leg(run.plan.minutes)
    assert len(passes) == run.step and max(passes) > 4
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    losses = [row["loss"] for row in rows if "loss" in row]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])


def _before(engine, example):
    context = engine.cache.context(list(example.far), example.head, [])
    return finished(context, engine.reader).before


def test_an_adapter_learns_and_its_file_changes_the_engine(base, tmp_path):
    plan = replace(PLAN, rank=4, learning_rate=1e-2, gaps=4)
    run = gap_run(tmp_path, base, plan)
    run.leg(plan.minutes)
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    losses = [row["loss"] for row in rows if "loss" in row]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    assert not any(parameter.requires_grad for name, parameter in run.network.named_parameters() if "embedding" in name)
    plain = nats(base)
    export(base, tmp_path / "run", base, "tiny")
    assert abs(nats(base) - plain) > 1e-3


def test_a_resumed_run_continues_where_it_stopped(base, tmp_path):
    first = gap_run(tmp_path, base)
    first.leg(PLAN.minutes / 2)
    again = gap_run(tmp_path, base)
    assert (again.step, again.elapsed) == (first.step, first.elapsed) and again.step
    for name, parameter in again.trained.items():
        torch.testing.assert_close(parameter, first.trained[name])


def test_a_run_goes_on_from_an_adapters_file(base, tmp_path):
    tensors = put_adapter(base)
    run = gap_run(tmp_path, base, replace(PLAN, rank=3), parent=base / "gap.adapter.safetensors")
    for name, parameter in run.trained.items():
        np.testing.assert_allclose(parameter.detach().numpy(), tensors[name], atol=0.01)
    with pytest.raises(ModelNotFound, match="no adapter"):
        gap_run(tmp_path, base, name="other", parent=base / "config.json")


def test_tokens_that_stay_count_little_except_behind_a_change_and_where_a_line_begins():
    assert kept_tokens([1, 2, 3, 4, 5], [1, 2, 9, 4, 5]) == [True, True, False, False, True]
    assert kept_tokens([1, 2], [1, 2]) == [True, True]
    few = COPY_WEIGHT
    assert edit_weights([True, True, False, True, True], [False] * 5) == [1.0, few, 1.0, few, few]
    assert edit_weights([True] * 4, [False, True, False, True]) == [1.0, few, 1.0, few]
    assert edit_weights([], []) == []  # a region that is deleted


SPANS = GapSettings(prefix_chars=400, suffix_chars=200)


def drawn(examples, seeds=12):
    return [each for seed in range(seeds) for each in examples.sample(random.Random(seed))]


def test_a_change_that_nothing_shown_foretells_is_no_example(base):
    tokenizer, plain = Tokenizer(base), training_data.commit()
    words = ("ßßßß", "øøøø", "žžžž")  # no token of one is in another
    steps = tuple(replace(each, text=f"def {word}():\n") for each, word in zip(plain.steps, words, strict=True))
    anything = EditExamples(tokenizer, [replace(plain, steps=steps)], SPANS, synthetic=0.0, foreseen=0.0)
    assert min(each.foreseen for each in drawn(anything)) < FORESEEN_SHARE
    kept = drawn(EditExamples(tokenizer, [replace(plain, steps=steps)], SPANS, synthetic=0.0))
    assert min(each.foreseen for each in kept) >= FORESEEN_SHARE
    assert any(each.foreseen == 1 for each in kept)


def test_some_examples_are_synthetic_edits_of_the_files_of_commits(base):
    tokenizer = Tokenizer(base)
    examples = EditExamples(tokenizer, [training_data.commit()], SPANS, synthetic=1.0)
    found = drawn(examples)
    titles = {tokenizer.decode(list(block)).partition("\n")[0] for each in found for block in each.far}
    assert "# recent edits:" in titles and "# old version of the next lines:" in titles
    assert all(len(each.target) <= MAX_EDIT_TOKENS for each in found)


def test_edits_show_the_steps_made_and_ask_for_the_next_one_or_for_none(base):
    tokenizer = Tokenizer(base)
    examples = EditExamples(tokenizer, [training_data.commit()], SPANS, synthetic=0.0)
    found = [each for seed in range(12) for each in examples.sample(random.Random(seed))]
    texts = [(tokenizer.decode(list(e.far[-1])), tokenizer.decode(list(e.target[:-1]))) for e in found]
    assert all("old version of the next lines" in region for region, _ in texts)
    quiet = [region for region, text in texts if region.endswith(text)]
    assert 0.15 < len(quiet) / len(texts) < 0.7
    assert any("number" in text and "number" not in region for region, text in texts)
    assert all(e.target[-1] == tokenizer.markers.end for e in found)


def test_an_edit_run_reads_a_folder_of_commits(base, tmp_path):
    (tmp_path / "commits").mkdir()
    for split in ("training", "validation"):
        commit_edit.write(tmp_path / "commits" / f"{split}.jsonl.gz", [training_data.commit()])
    setup = Setup(clock=Clock(), validation=tmp_path / "commits", validation_gaps=4)
    folders = base, tmp_path / "commits", tmp_path / "run"
    run = RUNS["edits"](*folders, PLAN, torch.device("cpu"), setup=setup, precision="float32")
    run.leg(PLAN.minutes)
    first = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[0])
    assert first["validation"]["examples"] == 4 and first["validation"]["nats"] > 0
    export(base, tmp_path / "run", base, "tiny")
    assert [each.name for each in adapters.read(base, weights.read_config(base))] == ["edit"]


@pytest.mark.parametrize("kind", RUNS)
def test_every_kind_of_example_is_an_option(kind):
    folders = ["--base", "b", "--corpus", "c", "--run", "r"]
    assert adapter_parser().parse_args([*folders, "--examples", kind]).examples == kind


def test_a_model_without_a_gap_format_or_with_a_writer_is_refused(tmp_path):
    plain = tiny.folder(tmp_path / "plain", rank=0, **tiny.WIDE)
    with pytest.raises(RequestError, match="gap format"):
        gap_run(tmp_path, plain)
    writer = tiny.folder(tmp_path / "writer", rank=2, markers=tiny.QWEN_MARKERS, **tiny.WIDE)
    with pytest.raises(RequestError, match="has a writer"):
        gap_run(tmp_path, writer)


def test_an_adapter_of_another_model_is_refused(base, tmp_path):
    put_adapter(base)
    other = tiny.folder(tmp_path / "other", rank=0, markers=tiny.QWEN_MARKERS, **(tiny.WIDE | {"num_hidden_layers": 3}))
    (other / adapters.file_name("gap")).write_bytes((base / adapters.file_name("gap")).read_bytes())
    with pytest.raises(ModelCorrupt, match="another shape"):
        native(other)


def test_eight_bits_keep_an_adapters_factors_to_half_a_step(base):
    tensors = put_adapter(base)
    [found] = adapters.read(base, weights.read_config(base))
    assert found.tensors.keys() == tensors.keys()
    for name, factor in tensors.items():
        wanted = factor.astype(np.float32)
        steps = np.abs(wanted).max(1 if name.endswith(".down") else 0, keepdims=True) / 127
        assert (np.abs(found.tensors[name] - wanted) <= 0.52 * steps + 1e-7).all()


def test_an_adapter_with_scales_that_are_not_finite_is_refused(base):
    put_adapter(base)
    path = base / adapters.file_name("gap")
    stored = load_file(path)
    stored["layers.1.out.up.scale"] = stored["layers.1.out.up.scale"] * np.float16("nan")
    save_file(stored, path, {"format": adapters.FORMAT, "base": adapters.base_shape(weights.read_config(base))})
    with pytest.raises(ModelCorrupt, match="not finite"):
        native(base)


def test_an_adapter_that_lacks_a_factor_or_its_scale_is_refused(base):
    put_adapter(base)
    path = base / adapters.file_name("gap")
    header = {"format": adapters.FORMAT, "base": adapters.base_shape(weights.read_config(base))}
    whole = load_file(path)
    for missing, said in (("layers.1.out.up.scale", "no scale for"), ("layers.1.out.up", "lacks layers.1.out")):
        save_file({name: each for name, each in whole.items() if name != missing}, path, header)
        with pytest.raises(ModelCorrupt, match=said):
            native(base)


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"\xff" * 64], ids=["empty", "zeros", "noise"])
def test_a_damaged_adapter_is_refused(base, content):
    (base / adapters.file_name("gap")).write_bytes(content)
    with pytest.raises(ModelCorrupt, match="cannot be read"):
        native(base)
