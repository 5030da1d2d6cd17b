"""On a GPU, captured steps fill what passes launched one by one do, by our kernels and by torch's operations."""

from itertools import islice

import pytest
import torch
from mercury_engine.device.ahead import DenoiseAhead
from mercury_engine.device.step import DeviceStep
from mercury_engine.device.torch_network import TorchNetwork
from mercury_lab.engine import Engine
from mercury_lab.evaluation.gaps import GAP_KINDS, gaps

from tests.support import tiny

FAMILIES = {
    "Llama": {"rank": 0},
    "Qwen2": {"rank": 0, "attention_bias": True},
    "Qwen3": {"rank": 0, "qk_norm": True, "head_dim": 16},
    "masked twin": {"rank": 4},
}


@pytest.mark.gpu
@pytest.mark.parametrize("is_fused", [True, False], ids=["ours", "torch"])
@pytest.mark.parametrize("family", FAMILIES)
def test_captured_steps_fill_what_plain_passes_do(tmp_path, device, family, is_fused):
    if device.type == "cpu":
        pytest.skip("about captures on a GPU")
    folder = tiny.folder(tmp_path / "model", **FAMILIES[family])
    plain, stepped = (Engine.load(folder, device="cuda", dtype=torch.float32) for _ in range(2))
    assert isinstance(plain.reader, TorchNetwork) and isinstance(stepped.reader, TorchNetwork)
    plain.reader.step, plain.reader._ahead = DeviceStep(plain.reader.decoder, lengths=()), None
    stepped.reader.step = step = DeviceStep(stepped.reader.decoder, is_fused)
    step.prepare()
    if stepped.reader._ahead is not None:
        stepped.reader._ahead = DenoiseAhead(stepped.reader.decoder, step, stepped.reader._head)
    for gap in islice(gaps(tiny.CODE, 2, 0, GAP_KINDS), 6):
        assert stepped.fill(gap.request).text == plain.fill(gap.request).text
