"""Which element type torch trains in on each device."""

import logging

import pytest
import torch
from mercury_lab.training import element_type
from mercury_lab.training.adapters.mixed_precision import measured_precision
from mercury_lab.training.optimisation.run import move_for_training

from tests.support import tiny

CPU, GPU = torch.device("cpu"), torch.device("cuda")
TYPES = (torch.float32, torch.bfloat16)


@pytest.fixture(params=TYPES, ids=str)
def faster(request, monkeypatch):
    """A type that this CPU multiplies faster than the other, also as far as the probe can tell."""
    products: list[torch.dtype] = []

    def seconds(dtype: torch.dtype) -> float:
        products.append(dtype)
        slow = len(products) <= 2  # the first product of each type pays for setting up
        return 1.0 if slow else 1e-4 if dtype is request.param else 5e-4

    monkeypatch.setattr(element_type, "_product_seconds", seconds)
    element_type._by_measurement.cache_clear()
    yield request.param
    element_type._by_measurement.cache_clear()
    assert len(products) == 2 * element_type.PROBE_ROUNDS, "measured once per process"


def test_a_cpu_computes_in_the_type_that_it_multiplies_faster_and_the_log_says_so(faster, caplog):
    with caplog.at_level(logging.INFO):
        assert element_type.fastest(CPU) is faster
        assert element_type.fastest(CPU) is faster
    assert caplog.text.count(f"torch computes in {str(faster)[6:]} on this CPU") == 1


def test_training_keeps_frozen_matrices_in_the_faster_type_and_trained_ones_in_float32(faster):
    network = tiny.network()
    move_for_training(network, CPU)
    assert {p.dtype for p in network.parameters() if not p.requires_grad} == {faster}
    assert {p.dtype for p in network.parameters() if p.requires_grad} == {torch.float32}
    assert measured_precision(CPU) == ("mixed" if faster is torch.bfloat16 else "float32")


def test_both_types_are_really_timed():
    assert all(element_type._product_seconds(dtype) > 0 for dtype in TYPES)


@pytest.mark.parametrize(("capability", "dtype"), [((7, 5), torch.float32), ((8, 0), torch.bfloat16)])
def test_a_gpu_without_bfloat16_computes_in_float32_and_the_log_says_so(monkeypatch, caplog, capability, dtype):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "A GPU")
    with caplog.at_level(logging.WARNING):
        assert element_type.fastest(GPU) is dtype
    assert caplog.text.count("A GPU (compute capability 7.5)") == (dtype is torch.float32)
