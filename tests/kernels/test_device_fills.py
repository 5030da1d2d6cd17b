"""Denoising in chunks on a device gives the fills of the plain loop, token for token."""

import json
import logging
from dataclasses import replace

import pytest
import torch
from mercury_engine.api import Control, FillRequest
from mercury_engine.cuda import device_denoising as device_denoisings
from mercury_engine.cuda.device_denoising import DeviceDenoising, device_denoising
from mercury_engine.cuda.graphs import PAGE_TOKENS, GraphDenoiser
from mercury_engine.decoding.diffusion.decoder import DiffusionDecoder
from mercury_engine.decoding.hypothesis import Hypothesis
from mercury_engine.engine import Engine
from mercury_engine.errors import Cancelled, ModelCorrupt
from mercury_engine.models.decoder import TorchDecoder
from mercury_kernels import attention, commit, head, linear, ops, qkv
from mercury_kernels.buffers import Buffers
from mercury_kernels.launch import INTERPRETED
from mercury_lab.evaluation.gaps import GAP_KINDS, gaps

from tests.support import tiny
from tests.support.answering import answered
from tests.support.thorough import GAPS

REQUEST = FillRequest(
    near="import os\n\n\ndef view(self):\n    return ", suffix=("(1)\n", "\n\nclass View:\n"), max_slots=12
)
WORD = replace(REQUEST, near=REQUEST.near + "self.request_conte")


def loaded(folder, device, **options):
    """A masked engine; on a CPU, which would denoise step by step, it gets the device's way here."""
    tiny.folder(folder)
    (folder / "settings.json").write_text(json.dumps({"decoding": {"bound": 6.0} | options}))
    engine = Engine.load(folder, device=device.type, dtype=torch.float32)
    assert isinstance(engine.decoder, DiffusionDecoder) and (engine.decoder.on_gpu is None) == (device.type == "cpu")
    return on_device(engine)


def on_device(engine, page_size=PAGE_TOKENS):
    """The engine with a device's denoising, whose weights and options are as they are now."""
    decoder, network = engine.decoder, engine.parts.denoiser.decoder
    decoder.on_gpu = DeviceDenoising(network, decoder.contexts, decoder.rules, decoder.options, page_size)
    return engine


def bounded(engine, bound):
    """The engine with another bound."""
    return on_device(engine.varied(replace(engine.parts.options, bound=bound)))


@pytest.fixture
def engine(device, tmp_path):
    return loaded(tmp_path / "model", device)


@pytest.fixture
def on_cpu(tmp_path):
    """On the CPU, where the host can count steps."""
    return loaded(tmp_path / "model", torch.device("cpu"))


def eager_to_end(engine):
    """Random weights rarely end a fill; these do."""
    with torch.no_grad():
        engine.parts.denoiser.decoder.markers[1] *= 3
    on_device(engine)


def written(engine, request, control=None, is_plain=False):
    """The fill's hypothesis and the fill, on the device or step by step."""
    made, kept, begin = [], engine.decoder.on_gpu, engine.decoder.rules.begin
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.decoder, "on_gpu", None if is_plain else kept)
        patch.setattr(engine.decoder.rules, "begin", lambda *given: (made.extend(begin(*given)), made)[1])
        return engine.fill(request, control), made[0]


def both(engine, request, control=None):
    """The fills on the device and step by step, which are asserted to be the same."""
    with pytest.MonkeyPatch.context() as watching:
        calls = count(watching, GraphDenoiser, "run_chunk")
        found, canvas = written(engine, request, control)
    assert calls, "the device was not used"
    plain, expected = written(engine, request, control, is_plain=True)
    assert canvas.ids == expected.ids
    assert (canvas.ended, found.text, found.unsure_from) == (expected.ended, plain.text, plain.unsure_from)
    assert canvas.probabilities == pytest.approx(expected.probabilities, rel=1e-3)
    assert found.confidence == pytest.approx(plain.confidence, rel=1e-3)
    return found, plain


def near_gaps(limit, seed, *kinds):
    """Up to `limit` gaps of each kind in real files, with the nearest part of their context."""
    for gap in gaps(tiny.HELD_OUT, limit, seed, kinds):
        request = gap.request
        yield replace(gap, request=replace(request, far=request.far[-2:], suffix=request.suffix[:3]))


def count(monkeypatch, owner, name):
    """A list that grows with every call of the method from now on."""
    calls, original = [], getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda self, *given: (calls.append(1), original(self, *given))[1])
    return calls


def test_real_fills_are_the_same_token_for_token(engine):
    eager_to_end(engine)
    ends, texts, each = 0, set(), GAPS // 4 or 12
    for gap in near_gaps(each, 0, *GAP_KINDS):
        found, _ = both(engine, gap.request)
        assert gap.request.multiline or "\n" not in found.text
        ends += found.is_finished
        texts.add(found.text)
    assert 0.4 * each < ends < 3.6 * each
    assert len(texts) > each


@pytest.mark.parametrize("bound", [0.0, 2.0, 100.0])
def test_the_bound_decides_alike_in_both_ways(engine, bound):
    found, plain = both(bounded(engine, bound), REQUEST)
    assert found.steps == plain.steps
    assert (found.steps == 1) == (bound == 100.0)


@pytest.mark.parametrize("most", [1, 3])
def test_steps_are_limited_alike_in_both_ways(engine, most):
    request = replace(REQUEST, near="x = 1", max_steps=most, multiline=True)  # behind a digit nothing is spelled
    found, plain = both(bounded(engine, 0.0), request)
    assert found.steps == plain.steps <= most


def test_a_syntax_error_is_filled_differently_in_both_ways(engine):
    mended = 0
    eager_to_end(engine)
    for number in range(20):
        request = replace(REQUEST, near=f"x{number} = ", suffix=("\n",), max_slots=16)
        plain, canvas = written(engine, request, is_plain=True)
        if not canvas.ended or len(plain.text) < 4:
            continue
        found, _ = both(engine, request, Control(check=lambda text, wrong=plain.text: 2 if text == wrong else None))
        mended += found.text != plain.text
    assert mended > 2


def test_several_fills_share_their_chunks_and_none_changes_another(engine, monkeypatch):
    requests = [replace(REQUEST, near=f"x{number} = 1", multiline=True) for number in range(2)]
    alone = [engine.fill(request) for request in requests]
    shared, run = [], GraphDenoiser.run_chunk
    monkeypatch.setattr(GraphDenoiser, "run_chunk", lambda self, jobs: (shared.append(len(jobs)), run(self, jobs))[1])
    outcomes = answered(engine, requests)
    assert [outcomes[id(request)].text for request in requests] == [fill.text for fill in alone]
    assert shared[0] == 2


def test_the_host_reads_once_per_chunk(on_cpu, monkeypatch):
    on_cpu = bounded(on_cpu, 0.0)
    reads, chunk = count(monkeypatch, Buffers, "fetch"), on_cpu.decoder.on_gpu.denoiser.chunk
    fill = on_cpu.fill(replace(REQUEST, near="x = 1", multiline=True))
    assert fill.steps > 2 * chunk
    assert len(reads) == -(-fill.steps // chunk)


def test_an_unsure_fill_is_given_up_after_a_chunk_and_keeps_its_sure_part(on_cpu, monkeypatch):
    on_cpu = bounded(on_cpu, 0.0)
    steps = count(monkeypatch, GraphDenoiser, "step")
    request = replace(REQUEST, multiline=True)
    both(on_cpu, request)
    whole = len(steps)
    steps.clear()
    both(on_cpu, replace(request, give_up_below=0.9))
    assert len(steps) <= whole - on_cpu.decoder.on_gpu.denoiser.chunk


def test_a_cancel_flag_costs_at_most_one_chunk(on_cpu, monkeypatch):
    on_cpu, control = bounded(on_cpu, 0.0), Control()
    steps, run = count(monkeypatch, GraphDenoiser, "step"), GraphDenoiser.run_chunk
    monkeypatch.setattr(GraphDenoiser, "run_chunk", lambda self, jobs: (control.cancel.set(), run(self, jobs))[1])
    with pytest.raises(Cancelled):
        on_cpu.fill(REQUEST, control)
    assert 0 < len(steps) <= on_cpu.decoder.on_gpu.denoiser.chunk


def test_a_deadline_returns_what_the_chunks_so_far_have_accepted(on_cpu, monkeypatch):
    on_cpu = bounded(on_cpu, 0.0)
    steps = count(monkeypatch, GraphDenoiser, "step")
    assert on_cpu.fill(replace(REQUEST, deadline_ms=0)).steps == 0
    assert not steps
    on_cpu.fill(REQUEST)  # which reads all context
    steps.clear()
    over = iter([0.0, 0.0])
    monkeypatch.setattr("mercury_engine.scheduler.time.perf_counter", lambda: next(over, 2.0))
    fill, canvas = written(on_cpu, replace(REQUEST, deadline_ms=1000))
    assert fill.steps == len(steps) == on_cpu.decoder.on_gpu.denoiser.chunk
    assert len(canvas.ids) < 12


def test_watched_fills_and_several_candidates_are_denoised_step_by_step(on_cpu, monkeypatch):
    eager_to_end(on_cpu)
    request = replace(REQUEST, near="x2 = 1")
    chunks = count(monkeypatch, GraphDenoiser, "run_chunk")
    expected = on_cpu.fill(request)
    assert expected.text and chunks
    chunks.clear()
    seen, canvases = tiny.watched(on_cpu, request)
    rivals = on_cpu.fill(replace(request, candidates=3))
    limited = on_cpu.fill(replace(WORD, max_steps=2))
    assert len(on_cpu.tokenizer.cut("世" * 60).known) > 96 - 12
    on_cpu.fill(replace(REQUEST, near="世" * 60))
    on_device(on_cpu.varied(replace(on_cpu.parts.options, threshold=0.5))).fill(request)
    assert not chunks
    assert (seen.text, seen.steps) == (expected.text, len(canvases) - 1)
    assert expected.text in {rivals.text, *(fill.text for fill in rivals.others)}
    assert limited.steps <= 2


def test_the_kernels_fill_what_the_plain_loop_does(on_cpu, monkeypatch):
    """With the kernels, in the interpreter, in place of their twins."""
    if not INTERPRETED.value:
        pytest.skip("on a GPU every fill is made of kernels")
    for name, module in (
        ("project_qkv", qkv),
        ("paged_attention", attention),
        ("linear", linear),
        ("choices", head),
        ("commit", commit),
    ):
        monkeypatch.setattr(ops, name, getattr(module, name))
    on_device(on_cpu, page_size=16)
    for request in (WORD, REQUEST):
        both(on_cpu, replace(request, max_slots=6))


def test_weights_that_compute_nan_are_an_error(engine):
    with torch.no_grad():
        engine.parts.denoiser.decoder.norm.fill_(float("nan"))
    with pytest.raises(ModelCorrupt, match="weights compute NaN"):
        engine.fill(REQUEST)


def test_the_backend_name_mentions_the_steps_on_the_device(on_cpu):
    assert on_cpu.backend == "torch, steps on the device"


def test_without_a_gpu_there_is_no_denoising_on_a_device_and_the_log_says_so(on_cpu, caplog):
    decoder = on_cpu.decoder
    with caplog.at_level(logging.WARNING):
        assert device_denoising(on_cpu.parts.denoiser, decoder.contexts, decoder.rules, decoder.options) is None
    assert caplog.text.count("no CUDA device: fills are denoised step by step") == 1


def test_a_gpu_without_room_falls_back_and_the_log_says_so(on_cpu, monkeypatch, caplog):
    def full(*_):
        raise torch.OutOfMemoryError("full")

    decoder = on_cpu.decoder
    monkeypatch.setattr(device_denoisings, "DeviceDenoising", full)
    monkeypatch.setattr(TorchDecoder, "device", torch.device("cuda"))
    with caplog.at_level(logging.WARNING):
        assert device_denoising(on_cpu.parts.denoiser, decoder.contexts, decoder.rules, decoder.options) is None
    assert caplog.text.count("no room") == 1


def test_full_memory_frees_the_pages_of_the_device(on_cpu, monkeypatch):
    on_cpu.fill(REQUEST)
    pool = on_cpu.decoder.on_gpu.denoiser.pool
    used = pool.free
    monkeypatch.setattr(Hypothesis, "accept", lambda *_: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(Exception, match="no memory left"):
        on_cpu.fill(REQUEST)
    assert pool.free > used
