"""Bad requests and weights raise an error or give a shorter fill; the next request is answered."""

import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.errors import DeviceError, ModelCorrupt
from mercury_engine.prompt import layout

from tests.support import tiny

REQUEST = FillRequest(near="def add(a, b", suffix=("):\n",), max_slots=6)


@pytest.fixture
def engine(tmp_path):
    return tiny.load(tiny.folder(tmp_path))


@pytest.mark.parametrize("deadline", [0.0, -5.0])
def test_an_expired_deadline_returns_an_empty_fill_at_once(engine, deadline):
    fill = engine.fill(FillRequest(near="x = ", deadline_ms=deadline))
    assert (fill.text, fill.steps) == ("", 0)
    assert engine.fill(REQUEST).steps > 0


@pytest.mark.parametrize("part", ["near", "far", "suffix"])
def test_only_the_nearest_part_of_too_large_a_context_is_read(engine, monkeypatch, part):
    monkeypatch.setattr(layout, "NEAR_TOKENS", 64)
    monkeypatch.setattr(layout, "NEAR_HOP_TOKENS", 16)
    monkeypatch.setattr(layout, "SEGMENT_TOKENS", 64)
    blocks = tuple(f"value_{i} = {i}\n" for i in range(200))
    long = {"near": "".join(blocks) + "x = ", "far": blocks, "suffix": ("", *blocks)}
    fill = engine.fill(FillRequest(**({"near": "x = "} | {part: long[part]}), max_slots=4))
    assert fill.steps > 0
    assert 0 < fill.tokens_read <= 64


def test_typing_moves_the_start_of_a_long_near_prefix_rarely():
    ids = range(10 * layout.NEAR_TOKENS)
    starts = {layout.near_part(ids[: layout.NEAR_TOKENS + typed])[0] for typed in range(layout.NEAR_HOP_TOKENS + 1)}
    assert starts == {0, layout.NEAR_HOP_TOKENS}
    assert len(layout.near_part(ids)) <= layout.NEAR_TOKENS


def test_weights_that_compute_nan_are_reported_and_the_engine_goes_on(engine):
    norm = engine.reader.decoder.norm
    kept = norm.detach().clone()
    with torch.no_grad():
        norm.fill_(float("nan"))
    with pytest.raises(ModelCorrupt, match="fetch the model again"):
        engine.fill(REQUEST)
    with torch.no_grad():
        norm.copy_(kept)
    engine.cache.clear()
    assert engine.fill(REQUEST).steps > 0


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), MemoryError()])
def test_full_memory_costs_the_caches_and_one_fill(engine, monkeypatch, error):
    before = engine.fill(REQUEST)

    def full(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(engine.decoder, "write", full)
        with pytest.raises(DeviceError, match="try again"):
            engine.fill(REQUEST)
    assert engine.cache._blocks.total == 0
    assert engine.fill(REQUEST).text == before.text
