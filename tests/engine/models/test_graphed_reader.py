"""Short passes of fixed shape read what passes of any shape read, and copy only what is new of the context."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from mercury_engine.models.graphed_reader import PAST_BUCKETS, ROW_BUCKETS, SHAPES, GraphedReader
from mercury_engine.models.network import ForwardRequest, Packing
from mercury_engine.models.torch_network import TorchNetwork

from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document
from tests.support import tiny


@pytest.fixture
def plain():
    return TorchNetwork(tiny.network(rank=0))


@pytest.fixture
def graphed(plain):
    return GraphedReader(plain.decoder)


def segment(network, count, start, seed=1):
    ids = np.random.default_rng(seed).integers(1, 400, count)
    _, block = network.read_together([ForwardRequest(ids)])[0]
    return network.rotated(block, start)


@torch.no_grad()
@pytest.mark.parametrize("rows", [1, 3, 8, 16])
@pytest.mark.parametrize("lengths", [(5,), (500, 40), (512, 511, 1)])
def test_a_pass_in_a_bucket_reads_what_the_plain_one_reads(plain, graphed, rows, lengths):
    past = [segment(plain, count, 0, seed) for seed, count in enumerate(lengths)]
    forward = ForwardRequest(np.arange(1, 1 + rows), past, sum(lengths[1:]))
    graphed.read(ForwardRequest(np.arange(16), [segment(plain, 2000, 0)], 0))  # what another pass left behind
    hidden, block = graphed.read(forward)
    [(expected, kept)] = plain.read_together([forward])
    torch.testing.assert_close(hidden, expected, atol=2e-5, rtol=2e-5)
    torch.testing.assert_close(block.keys, kept.keys, atol=2e-5, rtol=2e-5)
    torch.testing.assert_close(block.values, kept.values, atol=2e-5, rtol=2e-5)


@torch.no_grad()
def test_only_segments_that_are_new_or_moved_are_copied(plain, graphed):
    far, near, typed = segment(plain, 30, -30), segment(plain, 7, 0), segment(plain, 1, 7)

    def copied(*segments):
        graphed._past.keys.zero_()
        graphed.read(ForwardRequest(np.array([5]), segments, sum(each.keys.shape[3] for each in segments[1:])))
        return int(graphed._past.keys.abs().sum((0, 1, 2, 4)).count_nonzero())

    assert copied(far, near) == 37
    assert copied(far, near) == 0
    assert copied(far, near, typed) == 1
    assert copied(segment(plain, 31, -31), near) == 38


@torch.no_grad()
def test_passes_of_other_kinds_are_left_to_the_plain_network(plain, graphed):
    past = [segment(plain, 10, 0)]
    ids = np.arange(1, 5)
    place = np.arange(4)[None]
    assert graphed.read(ForwardRequest(ids)) is None
    assert graphed.read(ForwardRequest(np.arange(ROW_BUCKETS[-1] + 1), past, 10)) is None
    assert graphed.read(ForwardRequest(ids, past, 10, Packing(0 * place, place, place))) is None
    assert graphed.read(ForwardRequest(ids, [segment(plain, PAST_BUCKETS[-1] + 1, 0)], 10)) is None


@torch.no_grad()
def test_after_loading_no_request_waits_for_a_capture(plain, graphed, monkeypatch):
    graphed.prepare()
    assert len(SHAPES) == len(graphed._captures._graphs)
    graphed.read(ForwardRequest(np.arange(1, 6), [segment(plain, 600, 0)], 600))
    assert len(SHAPES) == len(graphed._captures._graphs)


@pytest.mark.parametrize("markers", [(), tiny.QWEN_MARKERS], ids=["blocks", "gap format"])
def test_an_engine_fills_the_same_with_graphs_of_short_passes(tmp_path, monkeypatch, markers):
    folder = tiny.folder(tmp_path / "model", rank=0, markers=markers)
    plain, graphed = tiny.load(folder), tiny.load(folder)
    assert isinstance(graphed.reader, TorchNetwork)
    graphed.reader._graphed = GraphedReader(graphed.reader.decoder)
    read, used = GraphedReader.read, []
    monkeypatch.setattr(GraphedReader, "read", lambda *given: used.append(read(*given)) or used[-1])
    text, builder = tiny.SAMPLE * 3, ContextBuilder()
    for cursor in (*range(900, 910), *range(2500, 2506)):
        snapshot = Document("file:///a.py", "python", 1, text).snapshot()
        request = replace(builder.build(snapshot, cursor, "a.py").request(), max_slots=8)
        assert graphed.fill(request).text == plain.fill(request).text
    assert sum(each is not None for each in used) > len(used) / 2
