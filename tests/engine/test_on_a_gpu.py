"""What the decoders ask of a GPU, counted on a pretend one: launches, waits, copies; the text is the CPU's."""

import logging
from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from mercury_engine.api import Control, FillRequest, GenerateRequest, Sampling
from mercury_engine.device.ahead import DenoiseAhead
from mercury_engine.errors import DeviceError
from mercury_engine.models import decoder_weights, weights
from mercury_engine.models.limits import GpuMemory
from mercury_engine.models.network import ForwardRequest
from mercury_engine.models.weights import FUSED_MATRICES
from mercury_kernels.reference import dense
from mercury_lab.engine import Engine
from mercury_lab.evaluation.gaps import GAP_KINDS, gaps
from mercury_lab.training.conversion.adapter_file import write_adapter
from safetensors.torch import load_file, save_file

from tests.support import tiny, tiny_gguf
from tests.support.close import coded
from tests.support.pretend_cuda import on_device, pretend_cuda
from tests.support.thorough import GAPS

NEAR = "def add(a, b):\n    return "
REQUESTS = [FillRequest(NEAR + "a" * typed, suffix=("\n\n\nprint(add(1, 2))\n",), max_slots=12) for typed in range(2)]

MOST_LAUNCHES = 18
"""Launches from the host for a pass, beside its graphs."""

FAMILIES = ["Open-dCoder", "DreamOn", "SDAR", "Fast-dLLM v2", "twin"]


RANKS = {"causal": 0, "twin": 4}
"""Of the models of our own: the one that denoises has an adapter."""


class Folders(dict):
    """Model folders by family, made when they are first asked for."""

    def __init__(self, root):
        self.root = root

    def __missing__(self, family):
        path = self.root / family.replace(" ", "-")
        if family in RANKS:
            self[family] = tiny.folder(path, RANKS[family])
        else:
            from tests.support import masked  # imports transformers, which takes a while

            self[family] = masked.folder(path, family)[0]
        return self[family]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return Folders(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """The tensors are small, so threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class OnCpu(dict):
    """Fills of the models on the CPU, in float32."""

    def __init__(self, folders):
        self.folders = folders

    def __missing__(self, name):
        engine = Engine.load(self.folders[name], device="cpu", dtype=torch.float32)
        self[name] = [engine.fill(each) for each in REQUESTS]
        return self[name]


@pytest.fixture(scope="module")
def on_cpu(folders):
    return OnCpu(folders)


def filled(monkeypatch, folder, expected):
    """Fills on the pretend device, those expected, and what each asked for."""
    with pretend_cuda(monkeypatch) as counts:
        engine = Engine.load(folder, device="cuda", dtype=torch.float32)
        for request, other in zip(REQUESTS, expected, strict=True):
            counts.clear()
            yield engine.fill(request), other, counts


def passes(found):
    """Passes of a masked fill at most: its steps, and those that search its length."""
    return 2 * found.steps


@pytest.mark.parametrize("family", FAMILIES)
def test_a_masked_model_fills_with_the_text_of_the_cpu(folders, on_cpu, monkeypatch, caplog, family):
    caplog.set_level(logging.INFO)
    for found, expected, counts in filled(monkeypatch, folders[family], on_cpu[family]):
        assert (found.text, found.steps) == (expected.text, expected.steps)
        waits = counts.waits.total()
        assert found.steps <= waits <= passes(found)  # one a pass, for what its rule asked
        assert not counts.blocking_copies
    assert counts.launches.total() <= MOST_LAUNCHES * waits
    assert " steps captured on cuda:0, 0 MB" in caplog.text


@pytest.fixture
def begun(monkeypatch):
    """Counts the denoise steps on the device, and those among them that the host began."""
    steps = Counter()
    for name in ("_begin", "_run"):
        done = getattr(DenoiseAhead, name)
        monkeypatch.setattr(
            DenoiseAhead, name, lambda *given, name=name, done=done: steps.update([name]) or done(*given)
        )
    return steps


@pytest.mark.parametrize("family", ["Open-dCoder", "Fast-dLLM v2", "DreamOn", "twin"])
def test_a_gpu_begins_a_step_while_the_host_decides_about_the_one_before(folders, monkeypatch, begun, family):
    efforts = ("instant", "medium", "high")
    requests = [replace(each, effort=effort, max_slots=24) for each in REQUESTS for effort in efforts]

    def watched(engine, request):
        views = []
        return engine.fill(request, Control(on_step=views.append)), views

    engine = Engine.load(folders[family], device="cpu", dtype=torch.float32)
    expected = [watched(engine, each) for each in requests]
    with pretend_cuda(monkeypatch) as counts:
        engine, launched = Engine.load(folders[family], device="cuda", dtype=torch.float32), DenoiseAhead._run
        assert max(counts.graphs) <= 5 * engine.reader.config.num_hidden_layers + 30

        def run(*given):
            counts.clear()
            made = launched(*given)
            assert (counts.launches, counts.replays) == ({"copy_": 1}, 1)  # of its answers to the host
            return made

        monkeypatch.setattr(DenoiseAhead, "_run", run)
        for request, (other, shown) in zip(requests, expected, strict=True):
            started = begun["_run"]
            found, views = watched(engine, request)
            assert (found.text, found.steps, found.confidence) == (
                other.text,
                other.steps,
                pytest.approx(other.confidence, rel=1e-3),
            )
            assert [[slot.text for slot in view] for view in views] == [[slot.text for slot in view] for view in shown]
            assert begun["_run"] - started <= found.steps + 1  # one was dropped
    assert begun["_run"] - begun["_begin"] >= sum(each.steps for each, _ in expected) // 2


@pytest.mark.parametrize("family", ["Open-dCoder", "Fast-dLLM v2", "DreamOn", "twin"])
def test_masked_models_fill_real_gaps_with_the_text_of_the_cpu(folders, monkeypatch, begun, family):
    requests = [*real_gaps(GAPS // 4 or 6)]
    engine = Engine.load(folders[family], device="cpu", dtype=torch.float32)
    expected = [engine.fill(each).text for each in requests]
    with pretend_cuda(monkeypatch):
        engine = Engine.load(folders[family], device="cuda", dtype=torch.float32)
        assert [engine.fill(each).text for each in requests] == expected
    assert begun["_run"] > len(requests)


def test_a_causal_model_fills_with_one_wait_and_no_blocking_copy_a_pass(folders, on_cpu, monkeypatch):
    for found, expected, counts in filled(monkeypatch, folders["causal"], on_cpu["causal"]):
        assert found.text == expected.text
        assert counts.waits.total() == found.steps
        assert not counts.blocking_copies
        assert counts.replays >= found.steps
    assert counts.launches.total() <= MOST_LAUNCHES * found.steps


def test_typed_keys_take_a_pass_a_step_and_none_that_only_reads(folders, adapted, monkeypatch):
    for folder in (folders["causal"], adapted):
        requests = [replace(REQUESTS[0], near=NEAR + "(self.x + 1"[:typed]) for typed in range(12)]
        engine = Engine.load(folder, device="cpu", dtype=torch.float32)
        expected = [engine.fill(each).text for each in requests]
        with pretend_cuda(monkeypatch) as counts:
            engine, extra = Engine.load(folder, device="cuda", dtype=torch.float32), []
            for request, text in zip(requests, expected, strict=True):
                counts.clear()
                found = engine.fill(request)
                assert found.text == text
                extra.append(counts.replays - 2 * found.steps)  # a step, and its answers
        assert extra[1:].count(0) >= 9
        assert max(extra[1:]) <= 1  # reads what was left before


@pytest.mark.parametrize("family", ["causal", "SDAR", "Open-dCoder"])
def test_a_text_is_generated_as_on_the_cpu_with_one_wait_a_pass(folders, monkeypatch, family):
    request = GenerateRequest(NEAR, max_tokens=12, sampling=Sampling(temperature=0.0))
    expected = Engine.load(folders[family], device="cpu", dtype=torch.float32).generate(request)
    with pretend_cuda(monkeypatch) as counts:
        engine = Engine.load(folders[family], device="cuda", dtype=torch.float32)
        counts.clear()
        found = engine.generate(request)
    assert found.text == expected.text
    assert 0 < counts.waits.total() <= 2 * found.steps
    assert not counts.blocking_copies


def real_gaps(count):
    """Gaps of every kind in real files with the nearest part of their context; every other has text to look up."""
    for number, gap in enumerate(islice(gaps(tiny.CODE, -(-count // len(GAP_KINDS)), 0, GAP_KINDS), count)):
        request, lookup = gap.request, (tiny.SAMPLE[:4000],) if number % 2 else ()
        far, suffix = (tuple(block[:200] for block in blocks) for blocks in (request.far[-1:], request.suffix[:2]))
        yield replace(request, near=request.near[-250:], far=far, suffix=suffix, max_slots=8, lookup_text=lookup)


def test_real_gaps_are_filled_with_the_text_of_the_cpu(folders, monkeypatch):
    requests = [*real_gaps(GAPS or 20)]
    engine = Engine.load(folders["causal"], device="cpu", dtype=torch.float32)
    expected = [engine.fill(each) for each in requests]
    with pretend_cuda(monkeypatch) as counts:
        engine = Engine.load(folders["causal"], device="cuda", dtype=torch.float32)
        found = [engine.fill(each) for each in requests]
    assert [each.text for each in found] == [each.text for each in expected]
    assert [each.steps for each in found] == [each.steps for each in expected]
    assert len({each.text for each in found}) > len(requests) // 3
    assert counts.replays >= sum(each.steps for each in found)


@pytest.mark.parametrize("kernels", [True, False], ids=["ours", "torch"])
@pytest.mark.parametrize(
    ("changes", "ours", "torchs"),
    [({}, 5, 16), ({"attention_bias": True}, 5, 16), ({"qk_norm": True}, 5, 19), ({"rank": 4}, 5, 24)],
    ids=["plain", "biases", "norms of heads", "adapter"],
)
def test_a_step_takes_few_launches_a_layer(tmp_path, monkeypatch, changes, ours, torchs, kernels):
    launches, each = [], ours if kernels else torchs
    for layers in (2, 3):
        with pretend_cuda(monkeypatch, kernels=kernels) as counts:
            folder = tiny.folder(tmp_path / str(layers), **{"rank": 0, "num_hidden_layers": layers} | changes)
            Engine.load(folder, device="cuda", dtype=torch.float32)
            launches.append(counts.graphs)
    passes, steps = zip(
        *(graphs[-4:][1::2] if "rank" in changes else graphs[-1:] * 2 for graphs in launches), strict=True
    )
    assert passes[1] - passes[0] == steps[1] - steps[0] == each
    assert passes[0] - 2 * each <= (5 if kernels else 25)
    assert steps[0] - 2 * each <= (10 if kernels else 120)  # with what is asked of the slots, and the rule


@pytest.fixture(scope="module")
def adapted(tmp_path_factory):
    """A causal model with biases and with both adapters, as the 0.5B is."""
    folder = tiny.folder(
        tmp_path_factory.mktemp("adapted") / "model", 0, markers=tiny.QWEN_MARKERS, attention_bias=True
    )
    config, random = weights.read_config(folder), np.random.default_rng(0)
    layer = tiny.network(0, attention_bias=True).layers[0]
    shapes = {name: getattr(layer, name).weight.shape for name in FUSED_MATRICES}
    for name in weights.ADAPTERS:
        factors = {}
        for stem, (outputs, inputs) in [
            (f"layers.{number}.{name}", shape)
            for number in range(config.num_hidden_layers)
            for name, shape in shapes.items()
        ]:
            factors[f"{stem}.down"] = random.normal(0, 0.3, (4, inputs)).astype(np.float32)
            factors[f"{stem}.up"] = random.normal(0, 0.3, (outputs, 4)).astype(np.float32)
        write_adapter(folder / weights.adapter_file(name), config, factors)
    return folder


def states(engine, adapter):
    """Hidden states [T,C] of a short pass after a start token, on the host."""
    network = engine.reader
    [(_, start)] = network.read_together([ForwardRequest(np.array([0]))])
    past = [network.rotated(start, 0)]
    request = ForwardRequest(np.array([40, 41, 42]), past=past, start=1, adapter=adapter)
    [(hidden, _)] = network.read_together([request])
    return hidden.cpu().numpy()


def test_a_model_with_adapters_fills_and_rewrites_with_them_as_on_the_cpu(adapted, monkeypatch):
    given = REQUESTS[1]
    plain = replace(given, adapter="")
    on_host = Engine.load(adapted, device="cpu", dtype=torch.float32)
    expected = {name: states(on_host, name) for name in ("", *weights.ADAPTERS)}
    fill, without = on_host.fill(given), on_host.fill(plain)
    assert fill.text != without.text
    with pretend_cuda(monkeypatch) as counts:
        engine = Engine.load(adapted, device="cuda", dtype=torch.float32)
        assert engine.edit_format == "mercury"  # so next edits are asked of the model
        assert engine.fill(given).text == fill.text
        assert engine.fill(plain).text == without.text
        for name, hidden in expected.items():
            counts.clear()
            found = states(engine, name)
            assert counts.replays == 2  # the start token, and the rows in a graph of their own
            np.testing.assert_allclose(found, hidden, atol=1e-4)
            others = [each for other, each in expected.items() if other != name]
            assert all(abs(found - each).max() > 0.1 for each in others)


def test_a_model_that_does_not_fit_the_gpu_runs_on_the_cpu_and_says_so(folders, on_cpu, monkeypatch, caplog):
    expected = on_cpu["causal"][0].text
    with pretend_cuda(monkeypatch, free=1 << 20), caplog.at_level(logging.WARNING):
        engine = Engine.load(folders["causal"], device="auto", dtype=torch.float32)
        assert engine.device == "cpu"
        assert engine.fill(REQUESTS[0]).text == expected
        [said] = [each.message for each in caplog.records if "GPU's memory" in each.message]
        assert "the model runs on the CPU" in said and "choose a smaller model" in said
        with pytest.raises(DeviceError, match="GPU's memory"):
            Engine.load(folders["causal"], device="cuda")


def test_a_gpu_without_memory_while_weights_are_copied_is_our_error(folders, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nmore lines")

    with pretend_cuda(monkeypatch):
        monkeypatch.setattr(decoder_weights, "fill_reader", full)
        with pytest.raises(DeviceError, match=r"does not fit the GPU's memory \(CUDA out of memory. Tried .* 2 GiB\)"):
            Engine.load(folders["causal"], device="cuda")


def test_weights_go_to_the_gpu_a_matrix_at_a_time(folders, monkeypatch):
    """The host never holds a second copy of the whole model."""
    with pretend_cuda(monkeypatch) as counts:
        network = decoder_weights.load(folders["causal"], torch.bfloat16, torch.device("cuda"))
        assert all(map(on_device, network.parameters()))
        assert sum(counts.blocking_copies.values()) >= len([*network.parameters()])


SHAPES = {
    "tiny": {"intermediate_size": 64, "attention_bias": True},
    "bundled": {"hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9, "num_key_value_heads": 3,
                "head_dim": 64},
}  # fmt: skip


@pytest.mark.parametrize("kernels", [True, False], ids=["ours", "torch"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_file_in_eight_bits_stays_so_where_kernels_read_it_or_floats_do_not_fit_and_fills_with_the_text_of_the_cpu(
    tmp_path, monkeypatch, caplog, shape, kernels
):
    decoder = tiny.network(0, **SHAPES[shape])
    model = tiny_gguf.convert(tmp_path / "tiny.gguf", decoder, "qwen2" if decoder.config.attention_bias else "llama")
    engine = Engine.load(model, device="cpu", dtype=torch.float32)
    expected = [engine.fill(each) for each in REQUESTS]
    free = 22 << 30 if kernels else GpuMemory(0, 4, has_codes=True).needed(decoder.config)
    with pretend_cuda(monkeypatch, free, kernels) as counts, caplog.at_level(logging.WARNING):
        engine = Engine.load(model, device="cuda", dtype=torch.float32)
        assert engine.reader.decoder.has_codes  # type: ignore[attr-defined]
        for request, other in zip(REQUESTS, expected, strict=True):
            counts.clear()
            found = engine.fill(request)
            assert (found.text, found.steps) == (other.text, other.steps)
            assert counts.waits.total() == found.steps
    assert ("the kernels do not run (Triton is missing)" in caplog.text) != kernels


def test_weights_that_do_not_fit_as_floats_are_held_in_eight_bits(tmp_path, monkeypatch):
    folder, path = tiny.folder(tmp_path / "model", 4, intermediate_size=64), tmp_path / "model" / "model.safetensors"
    stored = load_file(path)
    for name, weight in stored.items():
        if "layers" in name and weight.dim() == 2:  # rounded, so that eight bits change nothing
            stored[name] = dense(*coded(weight), torch.float32)
    save_file(stored, path)
    engine = Engine.load(folder, device="cpu", dtype=torch.float32)
    expected = [engine.fill(each).text for each in REQUESTS]
    config = weights.read_config(folder)
    free = GpuMemory(0, 4, has_codes=True).needed(config)
    with pretend_cuda(monkeypatch, free=free):
        engine = Engine.load(folder, device="cuda", dtype=torch.float32)
        assert [engine.fill(each).text for each in REQUESTS] == expected
        layer = engine.reader.decoder.layers[0]  # type: ignore[attr-defined]
        assert {part.weight.dtype for part in (layer.qkv, layer.out, layer.gate_up, layer.down)} == {torch.int8}
        with pytest.raises(DeviceError, match="GPU's memory"):
            monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (free - 1, 24 << 30))
            Engine.load(folder, device="cuda", dtype=torch.float32)


def test_a_diffusion_model_of_7b_fits_12_gb():
    shape = {"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28}
    config = tiny.config(152_064, **shape, num_key_value_heads=4, head_dim=128, tie_word_embeddings=False)
    for free, has_codes in ((20, False), (11, True)):
        memory = GpuMemory(free * 10**9, 2).for_model(config)
        assert memory.has_codes is has_codes
        assert memory.needed(config) < free * 10**9
