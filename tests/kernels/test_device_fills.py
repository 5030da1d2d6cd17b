"""With a deciding writer, the device loop gives the fills of the plain loop, token for token."""

import json
import logging
from dataclasses import replace
from threading import Event

import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.cuda import device_loop as device_loops
from mercury_engine.cuda.device_loop import DeviceLoop, device_loop
from mercury_engine.denoising.canvas import Canvas
from mercury_engine.engine import Engine
from mercury_engine.errors import Cancelled, ModelCorrupt
from mercury_engine.models.decoder import Decoder
from mercury_kernels import attention, commit, head, linear, ops, qkv
from mercury_kernels.buffers import Buffers
from mercury_kernels.launch import INTERPRETED
from mercury_lab.evaluation.gaps import GAP_KINDS, gaps

from tests.support import tiny

REQUEST = FillRequest(
    near="import os\n\n\ndef view(self):\n    return ", suffix=("(1)\n", "\n\nclass View:\n"), max_slots=12
)
WORD = replace(REQUEST, near=REQUEST.near + "self.request_conte")


def loaded(folder, device, **rule):
    """An engine whose writer decides; on a CPU, which would not use a device loop, it gets one here."""
    tiny.folder(folder)
    (folder / "settings.json").write_text(json.dumps({"rule": {"decides": "writer", "bound": 6.0} | rule}))
    engine = Engine.load(folder, device=device.type, dtype=torch.float32)
    assert (engine.loop is None) == (device.type == "cpu")
    engine.loop = engine.loop or DeviceLoop(engine.writer.decoder, engine.denoiser)
    return engine


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
        engine.writer.decoder.markers[1] *= 3
    engine.loop = DeviceLoop(engine.writer.decoder, engine.denoiser)


def filled(engine, request, loop):
    """The fill and its canvas, by the device loop or without it."""
    made, kept, original = [], engine.loop, engine._canvas
    engine._canvas = lambda *given: (made.append(original(*given)), made[-1])[1]
    engine.loop = loop
    try:
        return engine.fill(request), made[0]
    finally:
        engine.loop, engine._canvas = kept, original


def both(engine, request):
    """The fills by the device loop and the plain loop, whose canvases are asserted to be the same."""
    with pytest.MonkeyPatch.context() as watching:
        calls = count(watching, type(engine.loop.filler), "fill")
        found, canvas = filled(engine, request, engine.loop)
    assert calls, "the device loop was not used"
    plain, expected = filled(engine, request, None)
    assert canvas.ids[: canvas.settled] == expected.ids[: expected.settled]
    assert (canvas.ended, found.text, found.unsure_from) == (expected.ended, plain.text, plain.unsure_from)
    assert canvas.chances == pytest.approx(expected.chances, rel=1e-3)
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


def test_200_real_fills_are_the_same_token_for_token(engine, monkeypatch):
    eager_to_end(engine)
    rounds = count(monkeypatch, type(engine.loop.filler), "fill")
    ends: list[int] = []
    monkeypatch.setattr(engine.denoiser, "repaired", lambda *_: ends.append(1))
    in_parts, texts = 0, set()
    for gap in near_gaps(50, 0, *GAP_KINDS):
        before = len(rounds)
        found, plain = both(engine, gap.request)
        if len(rounds) == before + 1:
            assert found.steps == plain.steps
        else:
            in_parts += 1
        assert gap.request.multiline or "\n" not in found.text
        texts.add(found.text)
    assert in_parts > 5  # words that took more than one token to spell
    assert 20 < len(ends) / 2 < 180
    assert len(texts) > 50


@pytest.mark.parametrize("bound", [0.0, 2.0, 100.0])
def test_the_bound_decides_alike_in_both_loops(engine, bound):
    engine.denoiser.rule = replace(engine.denoiser.rule, bound=bound)
    found, plain = both(engine, REQUEST)
    assert found.steps == plain.steps
    assert (found.steps == 1) == (bound == 100.0)


@pytest.mark.parametrize("most", [1, 3])
def test_steps_are_limited_alike_in_both_loops(engine, most):
    request = replace(REQUEST, near="x = 1", max_steps=most, multiline=True)  # behind a digit nothing is spelled
    engine.denoiser.rule = replace(engine.denoiser.rule, bound=0.0)
    found, plain = both(engine, request)
    assert found.steps == plain.steps <= most


def test_drafts_are_verified_alike_in_both_loops(engine):
    differ = 0
    for gap in near_gaps(10, 1, "rest_of_line", "random_span"):
        free, _ = both(engine, gap.request)
        drafted, _ = both(engine, replace(gap.request, draft=gap.truth))
        differ += drafted.text != free.text
    assert differ  # the other slots' first look saw the draft


def test_a_syntax_error_is_filled_differently_in_both_loops(engine):
    mended = 0
    eager_to_end(engine)
    for number in range(20):
        request = replace(REQUEST, near=f"x{number} = ", suffix=("\n",), max_slots=16)
        plain, canvas = filled(engine, request, None)
        if not canvas.ended or len(plain.text) < 4:
            continue
        found, _ = both(engine, replace(request, check=lambda text, wrong=plain.text: 2 if text == wrong else None))
        mended += found.text != plain.text
    assert mended > 2


def test_the_host_reads_once_per_chunk(on_cpu, monkeypatch):
    on_cpu.denoiser.rule = replace(on_cpu.denoiser.rule, bound=0.0)
    reads, chunk = count(monkeypatch, Buffers, "fetch"), on_cpu.loop.filler.chunk
    fill = on_cpu.fill(replace(REQUEST, near="x = 1", multiline=True))
    assert fill.steps > 2 * chunk
    assert len(reads) == -(-fill.steps // chunk)


def test_an_unsure_fill_is_given_up_after_a_chunk_and_keeps_its_sure_part(on_cpu, monkeypatch):
    on_cpu.denoiser.rule = replace(on_cpu.denoiser.rule, bound=0.0)
    steps = count(monkeypatch, type(on_cpu.loop.filler), "step")
    request = replace(REQUEST, multiline=True)
    both(on_cpu, request)
    whole = len(steps)
    steps.clear()
    both(on_cpu, replace(request, give_up_below=0.9))
    assert len(steps) <= whole - on_cpu.loop.filler.chunk


def test_a_cancel_flag_costs_at_most_one_chunk(on_cpu, monkeypatch):
    on_cpu.denoiser.rule = replace(on_cpu.denoiser.rule, bound=0.0)
    steps, cancel = count(monkeypatch, type(on_cpu.loop.filler), "step"), Event()
    monkeypatch.setattr(on_cpu.loop, "_enough", lambda *_: pytest.fail("a chunk was looked at after the flag"))
    monkeypatch.setattr(on_cpu.loop.filler.captures, "run", cancelling(on_cpu.loop.filler.captures.run, cancel))
    with pytest.raises(Cancelled):
        on_cpu.fill(replace(REQUEST, cancel=cancel))
    assert 0 < len(steps) <= on_cpu.loop.filler.chunk


def cancelling(run, cancel):
    return lambda bucket: (cancel.set(), run(bucket))


def test_a_deadline_returns_the_slots_settled_so_far(on_cpu, monkeypatch):
    on_cpu.denoiser.rule = replace(on_cpu.denoiser.rule, bound=0.0)
    steps = count(monkeypatch, type(on_cpu.loop.filler), "step")
    assert on_cpu.fill(replace(REQUEST, deadline_ms=0)).steps == 0
    assert not steps
    over = iter([False, True, True, True, True])
    clock = type("Clock", (), {"perf_counter": staticmethod(lambda: 1e9 if next(over) else 0.0)})
    monkeypatch.setattr("mercury_engine.cuda.graphs.time", clock)
    fill, canvas = filled(on_cpu, replace(REQUEST, deadline_ms=1e6), on_cpu.loop)
    assert fill.steps == len(steps) == on_cpu.loop.filler.chunk
    assert canvas.settled < 12
    assert canvas.vocabulary.mask_id not in canvas.ids[: canvas.settled]


def test_observed_fills_and_several_candidates_take_the_plain_loop(on_cpu, monkeypatch):
    eager_to_end(on_cpu)
    request = replace(REQUEST, near="x2 = 1")
    on_device = count(monkeypatch, type(on_cpu.loop.filler), "fill")
    expected = on_cpu.fill(request)
    assert expected.text
    assert len(on_device) == 1
    seen, canvases = tiny.watched(on_cpu, request)
    rivals = on_cpu.fill(replace(request, candidates=3))
    limited = on_cpu.fill(replace(WORD, max_steps=2))
    assert len(on_cpu.tokenizer.cut("世" * 60).known) > 96 - 12
    on_cpu.fill(replace(REQUEST, near="世" * 60))
    on_cpu.denoiser.rule = replace(on_cpu.denoiser.rule, threshold=0.5)
    on_cpu.fill(request)
    assert len(on_device) == 1
    assert (seen.text, seen.steps) == (expected.text, len(canvases))
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
    on_cpu.loop = DeviceLoop(on_cpu.writer.decoder, on_cpu.denoiser, page_size=16)
    for request in (replace(WORD, max_slots=6), replace(REQUEST, max_slots=6, draft="x = 1")):
        both(on_cpu, request)


def test_weights_that_compute_nan_are_an_error(engine):
    with torch.no_grad():
        engine.writer.decoder.norm.fill_(float("nan"))
    with pytest.raises(ModelCorrupt, match="weights compute NaN"):
        engine.fill(REQUEST)


def test_a_deciding_reader_has_no_device_loop(tmp_path):
    engine = tiny.load(tiny.folder(tmp_path))
    assert (engine.loop, engine.backend) == (None, "torch")


def test_the_backend_name_mentions_the_device_loop(on_cpu):
    assert on_cpu.backend == "torch, device loop"


def test_without_a_gpu_the_log_says_that_the_plain_loop_fills(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        engine = loaded(tmp_path, torch.device("cpu"))
    assert caplog.text.count("no CUDA device: fills take the plain loop") == 1
    assert device_loop(None, engine.denoiser) is None


def test_a_gpu_without_room_falls_back_and_the_log_says_so(on_cpu, monkeypatch, caplog):
    def full(*_):
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(device_loops, "DeviceLoop", full)
    monkeypatch.setattr(Decoder, "device", torch.device("cuda"))
    with caplog.at_level(logging.WARNING):
        assert device_loop(on_cpu.writer, on_cpu.denoiser) is None
    assert caplog.text.count("no room") == 1


def test_full_memory_frees_the_pages_of_the_device_loop(on_cpu, monkeypatch):
    on_cpu.fill(REQUEST)
    pool = on_cpu.loop.filler.pool
    used = pool.free
    monkeypatch.setattr(Canvas, "settle", lambda *_: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(Exception, match="no memory left"):
        on_cpu.fill(REQUEST)
    assert pool.free > used
