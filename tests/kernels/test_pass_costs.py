"""What a pass on pages costs: launches, bytes of weights and pages, and bytes between host and device."""

import inspect
from collections import Counter

import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.models.paged_reader import ROWS
from mercury_kernels.buffers import Bucket, RowBuffers
from mercury_kernels.launch import INTERPRETED
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support import tiny
from tests.support.interpreter import use_kernels
from tests.support.paged import verifying

pytestmark = pytest.mark.skipif(not INTERPRETED.value, reason="counts launches of the interpreter")

LAYERS = 2

NO_LAUNCH = ("empty", "view", "unbind", "select", "slice", "detach", "alias", "as_strided", "_unsafe_view", "unsqueeze")
"""Operations of torch that start nothing on a GPU."""


class Launches(TorchDispatchMode):
    """Counts the kernels of Triton and of torch, and the bytes of weights that the former read."""

    def __init__(self, monkeypatch):
        super().__init__()
        from triton.runtime.interpreter import InterpretedFunction

        self.kernels, self.torch, self.weight_bytes = Counter(), Counter(), 0
        self._inside, original = False, InterpretedFunction.run

        def run(function, *args, grid, warmup, **kwargs):
            given = dict(zip(inspect.signature(function.fn).parameters, args, strict=False))
            self.kernels[function.fn.__name__] += 1
            if function.fn.__name__ in ("_linear", "_project_qkv", "_opinions"):
                self.weight_bytes += given["weight"].nbytes * grid[0]  # each tile of rows reads all weights
            self._inside = True
            try:
                return original(function, *args, grid=grid, warmup=warmup, **kwargs)
            finally:
                self._inside = False

        monkeypatch.setattr(InterpretedFunction, "run", run)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if not self._inside and not name.startswith(NO_LAUNCH) and "empty" not in name:
            self.torch[name] += 1
        return function(*args, **(kwargs or {}))


@pytest.fixture
def engine(tmp_path, monkeypatch):
    use_kernels(monkeypatch)
    return verifying(tiny.folder(tmp_path / "model", rank=0, num_hidden_layers=LAYERS))


def weight_bytes(reader):
    """Bytes of all matrices, the head with them."""
    layers = [m for each in reader.weights.layers for m in (each.qkv, each.out, each.gate_up, each.down)]
    return sum(matrix.weight.nbytes for matrix in (*layers, reader.weights.head))


def test_a_pass_takes_five_launches_a_layer_and_three_more_and_reads_every_weight_once(engine, monkeypatch):
    reader = engine.decoder.on_gpu.reader
    shape = Bucket(ROWS, 8, 1)
    reader._prepare(shape)
    reader.captures.run(shape)
    with Launches(monkeypatch) as seen, torch.inference_mode():
        reader.captures.run(shape)
    assert seen.kernels == {
        "_project_qkv": LAYERS, "_attend": LAYERS, "_linear": 3 * LAYERS, "_opinions": 1, "_accept": 1,
    }  # fmt: skip
    assert seen.torch == {"embedding": 1}
    assert seen.kernels.total() + seen.torch.total() == 5 * LAYERS + 3
    assert seen.weight_bytes == weight_bytes(reader)


def test_requests_that_share_a_pass_launch_nothing_more_and_read_every_weight_once(engine, monkeypatch):
    reader, shape = engine.decoder.on_gpu.reader, Bucket(ROWS, 8, 4)
    reader._prepare(shape)
    reader.captures.run(shape)
    with Launches(monkeypatch) as seen, torch.inference_mode():
        reader.captures.run(shape)
    assert seen.kernels.total() + seen.torch.total() == 5 * LAYERS + 3
    assert seen.weight_bytes == weight_bytes(reader)


def test_a_pass_takes_few_bytes_from_the_host_and_returns_fewer(engine):
    buffers = RowBuffers(Bucket(ROWS, 32, 1), torch.device("cpu"))
    assert 4 * buffers._back_size <= 160
    assert buffers._block.nbytes <= 1100 + 8 * 256  # of which the pairs take 8 bytes each


def test_a_key_behind_a_known_context_takes_a_pass_a_step_and_one_copy_each_way(engine, monkeypatch):
    request = FillRequest(near="def view(self):\n    return s", suffix=("\n",), max_slots=2)
    engine.fill(request)  # its lists of tokens are on the device now
    copies, runs = [], []
    for name, seen in (("send", copies), ("fetch", copies)):
        original = getattr(RowBuffers, name)
        monkeypatch.setattr(RowBuffers, name, lambda self, seen=seen, do=original: (seen.append(1), do(self)))
    original_run = engine.decoder.on_gpu.reader.captures.run
    monkeypatch.setattr(
        engine.decoder.on_gpu.reader.captures, "run", lambda shape: (runs.append(shape), original_run(shape))
    )
    with Launches(monkeypatch) as seen:
        fill = engine.fill(request)
    assert len(runs) == fill.steps
    assert len(copies) == 2 * fill.steps
    assert seen.kernels.total() == fill.steps * (5 * LAYERS + 2)
    assert seen.torch == {"embedding": fill.steps}
