"""The compiled network does what the plain one does, within the error of eight bits, and reports to nobody."""

import subprocess
import sys

import pytest
import torch
from mercury_engine import backend
from mercury_engine.engine import Engine
from mercury_engine.errors import RequestError
from mercury_engine.model import Network, Packing
from mercury_engine.openvino_network import OpenVinoNetwork, compiled
from mercury_engine.requests import FillRequest
from mercury_engine.spill import Spill

from tests.unit import tiny

IDS = torch.tensor([[1, 5, 9, 33, 21]])


@pytest.fixture(scope="module")
def plain() -> Network:
    return tiny.network(rank=4)


@pytest.fixture(scope="module")
def both(plain):
    return compiled(plain, 1, again=lambda: plain)


@pytest.fixture(scope="module")
def reader(both) -> Network:
    return both[0]


@pytest.fixture(scope="module")
def writer(both) -> Network:
    return both[1]


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Eight bits, in a random network that damps no error: less than a tenth in the mean."""
    assert found.shape == expected.shape
    found, expected = found.float(), expected.float()
    assert (found - expected).norm() < 0.1 * expected.norm(), (found - expected).norm() / expected.norm()


def test_the_writers_weights_are_loaded_when_it_is_first_asked(plain):
    loads = []
    reader, writer = compiled(plain, 1, again=lambda: loads.append(plain) or plain)
    reader.read(IDS)
    assert not loads
    for _ in range(2):
        writer.prepare()
        assert len(loads) == 1


def test_a_fill_may_be_the_first_to_ask_the_writer_whose_weights_come_from_the_folder(tmp_path):
    _, writer = backend.networks(tiny.folder(tmp_path, rank=4), torch.device("cpu"), None, 1, "openvino")
    with torch.inference_mode():
        writer.prepare()


@torch.no_grad()
@pytest.mark.parametrize("sides", [0, 1, 2, 3])
def test_reading_behind_any_number_of_sides_gives_the_same_states_and_block(plain, reader, sides):
    _, block = plain.read(IDS)
    past = [plain.rotated(block, start) for start in (-5, 0, 5)[:sides]]
    expected, expected_block = plain.read(IDS, past, 3)
    hidden, found = reader.read(IDS, past, 3)
    close(hidden, expected)
    close(found.keys, expected_block.keys)
    close(found.values, expected_block.values)
    close(reader.logits(hidden), plain.logits(expected))


@torch.no_grad()
@pytest.mark.parametrize("behind", [0, 1])
@pytest.mark.parametrize("before", [1, 2])
def test_writing_gives_the_same_states(plain, writer, before, behind):
    _, block = plain.read(IDS)
    sides = [plain.rotated(block, start) for start in (-5, 0)[:before]]
    after = [plain.rotated(block, 0)] * behind
    canvas = torch.tensor([[7, *[plain.config.mask_id] * 6]])
    expected = plain.write(canvas, sides, after, torch.tensor([4]))
    found = writer.write(canvas, sides, after, torch.tensor([4]))
    close(found, expected)
    logits, expected_logits = writer.writer_logits(found), plain.writer_logits(expected)
    assert torch.isneginf(logits[..., plain.config.mask_id]).all()
    shown = [i for i in range(plain.config.vocab_size + 2) if i != plain.config.mask_id]
    close(logits[..., shown], expected_logits[..., shown])
    elsewhere = plain.write(canvas, sides, after, torch.tensor([40]))
    assert (elsewhere - expected).norm() > 0.2 * expected.norm(), "a wrong frame would have been seen"


@torch.no_grad()
def test_canvases_packed_side_by_side_do_not_see_each_other(plain, writer):
    mask = plain.config.mask_id
    _, block = plain.read(IDS)
    sides, ends = ([plain.rotated(block, 0)], [plain.rotated(block, 0)]), torch.tensor([4])
    packing = Packing(*torch.tensor([[[0, 0, 0, 1, 1]], [[0, 1, 2, 0, 1]], [[3, 3, 3, 2, 2]]]))
    both = writer.write(torch.tensor([[7, mask, mask, 7, mask]]), *sides, ends, packing)
    close(both[:, :3], writer.write(torch.tensor([[7, mask, mask]]), *sides, ends))
    close(both[:, 3:], writer.write(torch.tensor([[7, mask]]), *sides, ends))


@torch.no_grad()
def test_results_stay_when_the_next_call_reuses_the_memory(reader):
    first, block = reader.read(IDS)
    kept, keys = first.clone(), block.keys.clone()
    reader.read(IDS + 1)
    assert torch.equal(first, kept)
    assert torch.equal(block.keys, keys)


def test_the_head_too_has_run_when_the_originals_of_the_weights_are_let_go_of(plain, monkeypatch):
    seen = []
    logits = OpenVinoNetwork.logits
    monkeypatch.setattr(OpenVinoNetwork, "logits", lambda *given: seen.append("head") or logits(*given))
    monkeypatch.setattr(Spill, "release", lambda _: seen.append("released"))
    compiled(plain, threads=1, again=lambda: plain)
    assert seen == ["head", "released"]


def test_the_writer_keeps_its_length_head(plain, writer):
    hidden = torch.randn(3, plain.config.hidden_size)
    assert torch.equal(writer.lengths(hidden), plain.lengths(hidden))


def test_a_cpu_without_further_wishes_gets_the_compiled_network(tmp_path):
    engine = Engine.load(tiny.folder(tmp_path), device="cpu", threads=1)
    assert isinstance(engine.reader, OpenVinoNetwork)
    assert isinstance(engine.writer, OpenVinoNetwork)
    assert not list(engine.reader.layers)
    assert engine.fill(FillRequest(near="def add(", suffix=("):\n",), max_slots=8)).steps >= 1


@pytest.mark.parametrize("wish", [{"backend": "torch"}, {"dtype": torch.float32}])
def test_plain_torch_can_be_asked_for(tmp_path, wish):
    engine = Engine.load(tiny.folder(tmp_path), device="cpu", threads=1, **wish)
    assert type(engine.reader) is Network


def test_without_openvino_torch_takes_over_and_says_so(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(backend, "find_spec", lambda name: None)
    engine = Engine.load(tiny.folder(tmp_path), device="cpu", threads=1)
    assert type(engine.reader) is Network
    assert "pip install openvino" in caplog.text
    with pytest.raises(RequestError, match="not installed"):
        Engine.load(tiny.folder(tmp_path), device="cpu", backend="openvino")


def test_threads_are_half_the_processors_unless_set(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(backend, "_compile", lambda load, threads: seen.append(threads) or (load(), None))
    for processors, threads in ((1, None), (2, None), (12, None), (64, None), (64, 20)):
        monkeypatch.setattr(backend.os, "cpu_count", lambda count=processors: count)
        Engine.load(tiny.folder(tmp_path), device="cpu", threads=threads)
    assert seen == [1, 1, 6, 8, 20]


def test_the_system_may_move_the_work_to_an_idle_core(reader, writer):
    for network in (reader, writer):
        assert not network._stack.get_compiled_model().get_property("ENABLE_CPU_PINNING")


def test_importing_it_reports_to_nobody():
    code = "import mercury_engine.openvino_network, sys; print(sys.modules['openvino_telemetry'])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "None"
