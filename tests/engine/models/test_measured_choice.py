"""With a GPU and everything on "auto", a pass of each decides what runs a model whose reader decides."""

import pytest
from mercury_engine.models import backend, measured_choice, torch_network
from mercury_engine.models.cpu import CpuNetwork
from mercury_engine.models.torch_network import TorchNetwork

from tests.support import tiny

pytestmark = tiny.needs_kernels


@pytest.fixture
def folder(tmp_path):
    return tiny.folder(tmp_path / "model", rank=0, **tiny.WIDE)


@pytest.fixture
def machine(monkeypatch):
    """A machine whose GPU is played by torch on the CPU; `seconds` is what a pass takes by each network."""
    seconds = {TorchNetwork: 0.002, CpuNetwork: 0.001}
    load = torch_network.load
    monkeypatch.setattr(backend, "_chosen", lambda wanted: "cuda" if wanted == "auto" else wanted)
    monkeypatch.setattr(torch_network, "load", lambda folder, device, dtype, count: load(folder, "cpu", dtype, count))
    monkeypatch.setattr(measured_choice, "pass_seconds", lambda network: seconds[type(network)])
    return seconds


def reader(folder, **options):
    wanted = {"device": "auto", "dtype": None, "threads": 1, "backend": "auto"} | options
    return backend.networks(folder, *wanted.values())


def test_the_c_kernels_run_a_model_that_is_slower_on_the_gpu(folder, machine):
    found = reader(folder)
    assert type(found.reader) is CpuNetwork and found.denoiser is None
    assert found.choice == "a pass takes 1.0 ms by C kernels, 2.0 ms on the GPU"


def test_the_gpu_runs_a_model_that_is_faster_there(folder, machine):
    machine[CpuNetwork] = 0.003
    found = reader(folder)
    assert type(found.reader) is TorchNetwork
    assert "3.0 ms by C kernels" in found.choice


def test_a_model_too_large_for_a_cpu_is_not_loaded_twice(folder, machine, monkeypatch):
    monkeypatch.setattr(measured_choice, "weight_bytes", lambda folder: 10**10)
    monkeypatch.setattr(backend, "_native", lambda *_: pytest.fail("the C kernels loaded it"))
    assert type(reader(folder).reader) is TorchNetwork


@pytest.mark.parametrize("options", [{"device": "cuda"}, {"backend": "torch"}])
def test_what_the_user_chose_is_not_measured(folder, machine, monkeypatch, options):
    monkeypatch.setattr(measured_choice, "pass_seconds", lambda network: pytest.fail("it was measured"))
    found = reader(folder, **options)
    assert type(found.reader) is TorchNetwork and found.choice == ""


def test_a_masked_model_stays_on_the_gpu_where_it_makes_steps_without_the_host(tmp_path, machine, monkeypatch):
    monkeypatch.setattr(measured_choice, "pass_seconds", lambda network: pytest.fail("it was measured"))
    found = reader(tiny.folder(tmp_path, **tiny.WIDE))
    assert type(found.reader) is TorchNetwork and found.choice == ""


def test_a_pass_is_timed_on_either_network(folder):
    for network in (reader(folder, device="cpu").reader, reader(folder, device="cpu", backend="torch").reader):
        assert 0 < measured_choice.pass_seconds(network) < 60
