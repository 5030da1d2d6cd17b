"""Blocks are read in passes of fixed shape, as they are read alone, and a context takes few of them."""

import numpy as np
import pytest
import torch
from mercury_engine.kv_cache.cache import PACKED_TOKENS, BlockCache
from mercury_engine.models.decoder import TorchDecoder
from mercury_engine.models.graphed_reader import BLOCK_ROW_BUCKETS, SHAPES, GraphedReader
from mercury_engine.models.network import ForwardRequest, Packing
from mercury_engine.models.torch_network import TorchNetwork
from mercury_lab.engine import finished

from tests.support import tiny


@pytest.fixture
def made():
    return tiny.network(rank=0)


@pytest.fixture
def gpu(made):
    """A network that says that it runs on a GPU."""
    network = TorchNetwork(made, GraphedReader(made))
    network.device = "cuda"
    return network


def read(network, far):
    cache = BlockCache(network, 0)
    finished(cache.context(far, (), []), network)
    return cache


FAR = [tuple(range(first, first + length)) for first, length in ((1, 30), (40, 200), (300, 1), (5, 290), (7, 60))]


def test_blocks_are_read_as_they_are_read_alone(made, gpu):
    found, expected = read(gpu, FAR), read(TorchNetwork(made), FAR)
    read(gpu, [tuple(range(450, 480))])  # leaves nothing of the longer pass before
    for block in FAR:
        torch.testing.assert_close(found._blocks.get(block).keys, expected._blocks.get(block).keys)
        torch.testing.assert_close(found._blocks.get(block).values, expected._blocks.get(block).values)


def test_a_context_takes_a_launch_for_every_512_tokens_and_no_plain_pass(gpu, monkeypatch):
    cache, runs = BlockCache(gpu, 0), []  # the start token has been read
    original = gpu._graphed._captures.run
    monkeypatch.setattr(gpu._graphed._captures, "run", lambda key: (runs.append(key[0][0]), original(key))[1])
    inside = TorchDecoder.read

    def read_by_graph(self, ids, *given, **more):
        assert ids.shape[1] in BLOCK_ROW_BUCKETS, "a plain pass"
        return inside(self, ids, *given, **more)

    monkeypatch.setattr(TorchDecoder, "read", read_by_graph)
    finished(cache.context(FAR, (), []), gpu)
    assert sum(map(len, FAR)) == 581
    assert runs == [512, 512]
    runs.clear()
    finished(cache.context([*FAR, tuple(range(60, 90))], (), []), gpu)
    assert runs == [128]
    assert BLOCK_ROW_BUCKETS[-1] == PACKED_TOKENS


def test_after_loading_no_request_waits_for_a_capture(gpu):
    gpu._graphed.prepare()
    captures = gpu._graphed._captures
    assert len(captures._graphs) == len(SHAPES)
    read(gpu, FAR)
    assert len(captures._graphs) == len(SHAPES)


@torch.no_grad()
def test_passes_of_other_kinds_are_left_to_the_plain_network(made):
    graphed, network = GraphedReader(made), TorchNetwork(made)
    ids, place = np.arange(1, 5), np.arange(4)[None]
    packing = Packing(0 * place, place, place)
    [(_, block)] = network.read_together([ForwardRequest(np.array([0]))])
    start = network.rotated(block, 0)
    assert graphed.read(ForwardRequest(ids, [start], 1, packing)) is not None
    assert graphed.read(ForwardRequest(ids, [start], 2, packing)) is None
    assert graphed.read(ForwardRequest(ids, [start, start], 1, packing)) is None
    long, many = np.arange(BLOCK_ROW_BUCKETS[-1] + 1), np.arange(BLOCK_ROW_BUCKETS[-1] + 1)[None]
    assert graphed.read(ForwardRequest(long, [start], 1, Packing(0 * many, many, many))) is None
