"""Which dtype a model is computed in on each device."""

import logging

import pytest
import torch
from mercury_engine.models import torch_network

GPU = torch.device("cuda")


@pytest.mark.parametrize(("capability", "dtype"), [((7, 5), torch.float32), ((8, 0), torch.bfloat16)])
def test_a_gpu_without_bfloat16_computes_in_float32_and_the_log_says_so(monkeypatch, caplog, capability, dtype):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "A GPU")
    with caplog.at_level(logging.WARNING):
        assert torch_network._dtype(GPU) is dtype
    assert caplog.text.count("A GPU (compute capability 7.5)") == (dtype is torch.float32)
