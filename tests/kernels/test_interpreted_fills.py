"""With the kernels in Triton's interpreter, fills by fused steps are those of the plain loop, token for token."""

from dataclasses import replace
from itertools import islice

import pytest
from mercury_engine.api import FillRequest
from mercury_engine.device import step
from mercury_engine.device.step import DeviceStep
from mercury_engine.device.torch_network import TorchNetwork
from mercury_kernels.launch import INTERPRETED
from mercury_lab.evaluation.gaps import GAP_KINDS, gaps

from tests.support import masked, tiny
from tests.support.interpreter import fast_interpreter, use_kernels
from tests.support.thorough import GAPS

pytestmark = pytest.mark.skipif(not INTERPRETED.value, reason="on a GPU every step is made of kernels")

CAUSAL = {
    "Llama": {},
    "Qwen2": {"attention_bias": True, "num_key_value_heads": 1},
    "Qwen3": {"qk_norm": True, "head_dim": 16},
}


@pytest.fixture(scope="module", autouse=True)
def kernels():
    with fast_interpreter(), pytest.MonkeyPatch.context() as patch:
        use_kernels(patch)
        patch.setattr(step, "KEYS", (256, 1024))
        yield


def places(count: int):
    """Real gaps of every kind with short contexts; every other has text to look up."""
    found = gaps(tiny.CODE, -(-count // len(GAP_KINDS)), 10, GAP_KINDS)
    for number, gap in enumerate(islice(found, count)):
        request, lookup = gap.request, (tiny.SAMPLE[:4000],) if number % 2 else ()
        far, suffix = (tuple(block[:60] for block in blocks) for blocks in (request.far[-1:], request.suffix[:1]))
        near = request.near[-30 - 3 * number % 50 :]
        yield replace(request, near=near, far=far, suffix=suffix, max_slots=6, lookup_text=lookup)


def compared(folder, requests: list[FillRequest]) -> None:
    plain, fused, steps = tiny.load(folder), tiny.load(folder), 0
    assert isinstance(fused.reader, TorchNetwork)
    fused.reader.step = made = DeviceStep(fused.reader.decoder, is_fused=True)
    run, runs = made._captures.run, []
    made._captures.run = lambda shape: (runs.append(shape), run(shape))[1]
    for request in requests:
        found, expected = fused.fill(request), plain.fill(request)
        assert (found.text, found.steps) == (expected.text, expected.steps)
        assert found.confidence == pytest.approx(expected.confidence, rel=1e-3)
        steps += found.steps
    assert len(runs) >= steps


@pytest.mark.parametrize("family", CAUSAL)
def test_a_causal_model_fills_real_gaps_alike(tmp_path, family):
    compared(tiny.folder(tmp_path / "model", rank=0, **CAUSAL[family]), [*places(max(2, GAPS // 3))])


def test_a_masked_twin_fills_real_gaps_alike_with_its_adapter(tmp_path):
    compared(tiny.folder(tmp_path / "model", rank=4), [*places(max(2, GAPS // 10))])


@pytest.mark.parametrize("family", ["Open-dCoder", "SDAR"])
def test_a_masked_model_fills_real_gaps_alike(tmp_path, family):
    compared(masked.folder(tmp_path / "model", family)[0], [*places(max(2, GAPS // 10))])
