"""Passes of fixed shape compute what passes of any shape compute, and copy only what is new of the context."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mercury_engine.device import step as device_step
from mercury_engine.device.step import KEYS, LONG_ROWS, ROWS, DeviceStep
from mercury_engine.device.torch_network import TorchNetwork
from mercury_engine.kv_cache import cache as cache_module
from mercury_engine.kv_cache.cache import BlockCache
from mercury_engine.models.network import ForwardRequest
from mercury_lab.engine import finished

from tests.support import tiny

FAMILIES = {
    "Llama": {},
    "Qwen2": {"attention_bias": True, "tie_word_embeddings": False},
    "Qwen3": {"qk_norm": True, "head_dim": 16},
    "Granite": {
        "embedding_multiplier": 3.0,
        "attention_multiplier": 0.2,
        "residual_multiplier": 0.4,
        "logits_scaling": 2.0,
    },
    "Llama 3": {"rope_factors": (1.0, 2.0, 3.0, 4.0)},
}


@pytest.fixture(scope="module", autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture
def plain():
    return TorchNetwork(tiny.network(rank=0))


@pytest.fixture
def step(plain):
    return DeviceStep(plain.decoder)


def segment(network, count, start, seed=1):
    ids = np.random.default_rng(seed).integers(1, 400, count)
    _, block = network.read_together([ForwardRequest(ids)])[0]
    return network.rotated(block, start)


def fits(step, forward):
    return step.load(forward, False) is not None


def alike(step, network, forward):
    assert fits(step, forward)
    made = TorchNetwork(network.decoder, step)
    (hidden, block), (expected, kept) = (each.read_together([forward])[0] for each in (made, network))
    torch.testing.assert_close(hidden, expected, atol=3e-5, rtol=3e-5)
    torch.testing.assert_close(block.keys, kept.keys, atol=3e-5, rtol=3e-5)
    torch.testing.assert_close(block.values, kept.values, atol=3e-5, rtol=3e-5)
    for start in (forward.start, 5):
        placed, expected = made.rotated(block, start), network.decoder.rotated(kept, start)
        torch.testing.assert_close(placed.keys, expected.keys, atol=3e-5, rtol=3e-5)
        torch.testing.assert_close(placed.values, expected.values, atol=3e-5, rtol=3e-5)


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 64, 90])
@pytest.mark.parametrize("lengths", [(), (5,), (400, 40), (512, 511, 1)])
def test_a_pass_of_fixed_shape_reads_what_the_plain_one_reads(plain, step, rows, lengths):
    past = [segment(plain, count, 0, seed) for seed, count in enumerate(lengths)]
    step.read(ForwardRequest(np.arange(16), [segment(plain, 2000, 0)], 0), False)  # what another pass left behind
    alike(step, plain, ForwardRequest(np.arange(1, 1 + rows), past, sum(lengths[1:])))


@pytest.mark.parametrize("block", [1, 4, 32, None])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_read_causally_in_blocks_and_as_a_whole(family, block):
    plain = TorchNetwork(tiny.network(rank=0, **FAMILIES[family]))
    forward = ForwardRequest(np.arange(3, 40), [segment(plain, 32, 0)], 32, block=block)
    alike(DeviceStep(plain.decoder), plain, forward)


@pytest.mark.parametrize("runs", [((5, 6, 7), (8,), (9, 10)), ((5,) * 9, (6,) * 9), ((5, 9) * 70, (6, 8, 9) * 90)])
def test_runs_side_by_side_do_not_see_each_other(plain, step, runs):
    forward = ForwardRequest(np.concatenate(runs), [segment(plain, 20, 0)], 20, [*map(len, runs)])
    alike(step, plain, forward)


@pytest.mark.parametrize("canvases", [((7, 500, 500, 501),), ((7, 8, 500), (7, 9, 500))])
def test_canvases_are_denoised_between_two_sides_with_the_adapter(canvases):
    plain = TorchNetwork(tiny.network(rank=4))
    step = DeviceStep(plain.decoder)
    before, after = [segment(plain, 30, -30), segment(plain, 6, 0)], [segment(plain, 25, 0, 3)]
    ids, runs = np.concatenate(canvases), [*map(len, canvases)] if len(canvases) > 1 else ()
    forward = ForwardRequest(ids, before, 6, runs, block=None, after=after)
    found = step.read(forward, True)[0]
    [(expected, _)] = plain.read_together([forward])
    torch.testing.assert_close(found, expected, atol=3e-5, rtol=3e-5)
    longer = replace(forward, ids_T=np.append(ids, 500), runs=())  # the suffix is one position farther away
    [(expected, _)] = plain.read_together([longer])
    torch.testing.assert_close(step.read(longer, True)[0], expected, atol=3e-5, rtol=3e-5)


def test_only_segments_that_are_new_or_moved_are_copied(plain, step):
    far, near, typed = segment(plain, 30, -30), segment(plain, 7, 0), segment(plain, 1, 7)

    def copied(*segments):
        step.buffer.keys.zero_()
        forward = ForwardRequest(np.array([5]), segments, sum(each.keys.shape[3] for each in segments[1:]))
        step.read(forward, False)
        seen = sum(each.keys.shape[3] for each in segments)
        return int(step.buffer.keys[:, :, :seen].abs().sum((0, 1, 3)).count_nonzero())

    assert copied(far, near) == 37
    assert copied(far, near) == 0
    assert copied(far, near, typed) == 1
    assert copied(far) == 0
    assert copied(far, near) == 7  # the pass before has written over it
    assert copied(segment(plain, 31, -31), near) == 38
    step.clear()
    assert copied(near) == 7


def test_what_a_pass_has_read_stays_when_a_graph_writes_its_results_again():
    step, made = DeviceStep(tiny.network(rank=0, num_key_value_heads=1)), []
    run = step._captures.run
    step._captures.run = lambda shape: made.append(run(shape)) or made[-1]
    hidden, segment = step.read(ForwardRequest(np.arange(16)), False)
    for each in (*made[0], step.buffer.keys, step.buffer.values):
        each.fill_(torch.nan)
    read = hidden, segment.block.keys, segment.block.values, segment.keys
    assert all(each.isfinite().all() for each in read)


def test_on_a_gpu_with_little_free_memory_the_longest_steps_are_left_out(plain, monkeypatch):
    decoder = plain.decoder
    token = 2 * 2 * decoder.config.num_key_value_heads * decoder.config.head_dim * 4
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (8 * 1500 * token, 0))
    gpu = SimpleNamespace(config=decoder.config, embedding=decoder.embedding, device=torch.device("cuda"))
    assert device_step._affordable(gpu) == [512, 1024]
    assert device_step._affordable(decoder) == [512, 1024, 4096]


def test_a_shape_that_is_new_is_captured_over_valid_rows_and_what_is_held_is_copied_again(plain, step):
    past = [segment(plain, 40, 0)]
    first = ForwardRequest(np.arange(300, 390), past, 40)
    alike(step, plain, first)
    alike(step, plain, ForwardRequest(np.arange(5), past, 40))
    alike(step, plain, ForwardRequest(np.arange(20), past, 40))
    for shape in step.shapes:
        step.replay(shape)
    alike(step, plain, first)


def test_a_pass_that_fits_no_shape_gets_a_buffer_of_its_own(plain, step):
    nearly = [segment(plain, KEYS[-1] - 16, 0)]
    assert fits(step, ForwardRequest(np.arange(16), nearly))
    forward = ForwardRequest(np.arange(17), nearly)
    assert not fits(step, forward) and not fits(step, ForwardRequest(np.arange(LONG_ROWS[-1] + 1) % 400))
    found, [(expected, _)] = step.read(forward, False)[0], plain.read_together([forward])
    torch.testing.assert_close(found, expected)


def test_after_loading_no_request_waits_for_a_capture(plain, step):
    assert step.prepare() == len(step.shapes) == len(ROWS) * len(KEYS) + len(LONG_ROWS) * len(KEYS) - 1 == 14
    step.read(ForwardRequest(np.arange(1, 40), [segment(plain, 600, 0)], 600), False)
    assert len(step.shapes) == 14


def test_a_context_takes_a_step_for_every_512_tokens_and_is_read_as_blocks_are_alone(monkeypatch):
    decoder = tiny.network(rank=0)
    far = [tuple(range(first, first + count)) for first, count in ((1, 30), (40, 200), (300, 1), (5, 290), (7, 60))]
    gpu, alone = TorchNetwork(decoder, DeviceStep(decoder)), TorchNetwork(decoder)
    gpu.device = "cuda"
    caches = [BlockCache(network, 0) for network in (gpu, alone)]
    runs, run = [], gpu.step._captures.run
    gpu.step._captures.run = lambda shape: (runs.append(shape.rows), run(shape))[1]
    monkeypatch.setattr(cache_module, "free_bytes", lambda _: None)
    for cache, network in zip(caches, (gpu, alone), strict=True):
        finished(cache.context(far, (), []), network)
    assert runs == [512, 512]  # 581 tokens
    for block in far:
        found, expected = (cache._blocks.get(block) for cache in caches)
        torch.testing.assert_close(found.keys, expected.keys, atol=3e-5, rtol=3e-5)
        torch.testing.assert_close(found.values, expected.values, atol=3e-5, rtol=3e-5)
