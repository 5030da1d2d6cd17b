"""If a kernel cannot run, its twin answers and the log says so once."""

import contextlib
import logging
from types import SimpleNamespace

import pytest
import torch
from mercury_kernels import capture, launch, linear, ops, reference
from mercury_kernels.capture import WARMUPS, Captures, counters
from mercury_kernels.operands import Matrix

ON_GPU = SimpleNamespace(is_cuda=True, device=torch.device("cuda"))


@pytest.fixture
def failing(monkeypatch):
    """An operation whose kernel raises an error, and what was called."""
    monkeypatch.setattr(ops, "broken", {})
    monkeypatch.delenv(ops.STRICT_VARIABLE, raising=False)
    calls: list[str] = []

    def twin(x):
        calls.append("twin")
        return 2.0

    def made(error):
        def kernel(x):
            calls.append("kernel")
            raise error

        monkeypatch.setattr(ops, "_kernels", lambda *_: SimpleNamespace(twin=kernel))
        return ops._on_gpus("module", twin), calls

    return made


@pytest.mark.parametrize("error", [RuntimeError("Failed to find C compiler"), OSError("ptxas not found")])
def test_a_kernel_that_does_not_compile_is_given_up_and_its_twin_answers(failing, caplog, error):
    run, calls = failing(error)
    with caplog.at_level(logging.WARNING):
        assert [run(ON_GPU) for _ in range(3)] == [2.0, 2.0, 2.0]
    assert calls == ["kernel", "twin", "twin", "twin"]
    assert len(caplog.records) == 1
    assert str(error) in caplog.text
    assert ops.broken == {"twin": str(error)}


@pytest.mark.parametrize(
    "said", ["CUDA error: an illegal memory access", "Triton Error [CUDA]: an illegal memory access was encountered"]
)
def test_a_fault_of_the_device_gives_no_kernel_up(failing, said):
    run, calls = failing(RuntimeError(said))
    with pytest.raises(RuntimeError, match="illegal memory access"):
        run(ON_GPU)
    assert calls == ["kernel"] and not ops.broken


@pytest.fixture
def uncapturable(monkeypatch):
    """The part of CUDA that a capture needs; the capture raises the error in the list."""
    errors: list[Exception] = []

    def graph(*_, **__):
        raise errors[0]

    stream = SimpleNamespace(wait_stream=lambda _: None)
    for name, fake in {
        "graph_pool_handle": lambda: None,
        "Stream": lambda _: stream,
        "current_stream": lambda _: stream,
        "stream": lambda _: contextlib.nullcontext(),
        "CUDAGraph": type("CUDAGraph", (), {}),
        "graph": graph,
        "synchronize": lambda _: None,
    }.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(capture, "new_counters", lambda device: torch.zeros(1))
    return errors


def test_work_that_cannot_be_captured_runs_launch_by_launch_and_the_log_says_so_once(uncapturable, caplog):
    uncapturable.append(RuntimeError("operation not permitted when stream is capturing"))
    captures, runs = Captures(torch.device("cuda")), []
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            captures.prepare("a", lambda: runs.append(1))
            captures.run("a")
    assert len(runs) == WARMUPS + 3
    assert caplog.text.count("cannot be captured") == 1


def test_graphs_of_two_engines_count_apart_so_that_both_may_run_at_once():
    device, seen = torch.device("cpu"), {}
    first, second = Captures(device), Captures(device)
    for name, made in (("first", first), ("second", second)):
        made.prepare("work", lambda name=name: seen.setdefault(name, set()).add(counters(device).data_ptr()))
    for made in (first, second, first):
        made.run("work")
    assert len(seen["first"]) == len(seen["second"]) == 1
    assert len(seen["first"] | seen["second"] | {counters(device).data_ptr()}) == 3


def test_without_triton_or_on_an_old_card_the_twins_answer(monkeypatch):
    device, find = torch.device("cuda"), ops._kernels.__wrapped__
    for version, found in (((7, 5), reference), ((8, 0), linear)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _, version=version: version)
        assert find("linear", device) is found
        assert (ops.why_not(device) is None) == (found is linear)
    monkeypatch.setattr(ops, "_import_error", lambda: "No module named 'triton'")
    assert find("linear", device) is reference
    assert "pip install triton" in ops.why_not(device)


@pytest.mark.parametrize(("shared", "found"), [(232_448, 4), (101_376, 3), (50_000, 2), (40_000, 1)])
def test_a_loop_has_the_stages_that_the_shared_memory_of_the_card_allows(monkeypatch, shared, found):
    monkeypatch.setattr(launch, "shared_memory", lambda _: shared)
    assert launch.stages(torch.device("cuda"), most=4, each=49_408) == found


@pytest.mark.gpu
def test_kernels_answer_on_a_gpu(device, monkeypatch):
    if device.type == "cpu":
        pytest.skip("about the dispatch on a GPU")
    seen, product = [], linear.linear
    monkeypatch.setattr(linear, "linear", lambda *given: (seen.append(1), product(*given))[1])
    ops.linear(torch.ones(2, 16, device=device), Matrix(torch.ones(16, 16, device=device)))
    assert seen
    assert not ops.broken
