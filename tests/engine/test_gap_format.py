"""A model with a gap format reads in it: cached, exactly, and with the rest of the cursor's line in sight."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.gap_rules import SlotLimits
from mercury_engine.models.network import ForwardRequest, KeyValueBlock
from mercury_engine.prompt.layout import rest_and_below
from mercury_lab.engine import Engine, finished

from tests.support import tiny

PREFIX, SUFFIX, MIDDLE, FILE = range(500, 504)

REQUEST = FillRequest(
    near="def view(self):\n    path = self.pa",
    far=("import os\n", "class View:\n    name = 1\n"),
    suffix=(")\n    return path\n", "\ndef other():\n    pass\n"),
    max_slots=6,
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> Engine:
    folder = tiny.folder(tmp_path_factory.mktemp("format") / "model", rank=0, markers=tiny.QWEN_MARKERS)
    return tiny.load(folder)


def logits(engine: Engine, request: FillRequest) -> np.ndarray:
    """Log-probabilities of the first token behind the cursor's line, through the cache."""
    cut = engine.decoder.contexts.cut(request)
    place = engine.surroundings(request, cut.read)
    [logp_V] = finished(Verifier(engine.reader, place, cut.known).verify([]), engine.reader)
    return np.asarray(logp_V)


def uncached(engine: Engine, request: FillRequest) -> np.ndarray:
    """The same by one run over all tokens, in which a block sees itself and the start, and the stack sees all."""
    network, encode = engine.reader, engine.tokenizer.encode
    line, below = rest_and_below(request.suffix)
    blocks = [encode(block) for block in (*reversed(below), *request.far)]
    head, _, typed = request.near.rpartition("\n")
    cut = engine.tokenizer.cut(typed)
    rest = encode("".join(line))
    stack = [*encode(f"{head}\n"), SUFFIX, *rest, MIDDLE, *cut.read, *cut.known]
    parts = []
    for ids in blocks:
        [(_, block)] = network.read_together([ForwardRequest(np.array([PREFIX, *ids]))])
        parts.append(KeyValueBlock(block.keys[:, :, :, 1:], block.values[:, :, :, 1:]))
    [(_, start)] = network.read_together([ForwardRequest(np.array([PREFIX]))])
    far = network.side_by_side([start, *parts], -1 - sum(map(len, blocks)))
    [(hidden, _)] = network.read_together([ForwardRequest(np.array(stack), [far])])
    return network.log_probabilities(hidden[-1:])[0].numpy()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"near": "def view(self):\n"},
        {"suffix": ("\n",)},
        {"far": ()},
        {"near": REQUEST.near + "th, ", "suffix": (") + 1\n    return path\n",)},
    ],
    ids=["middle of a line", "start of a line", "end of a line", "near only", "further on"],
)
@torch.inference_mode()
def test_the_cache_gives_what_one_uncached_run_of_the_format_gives(engine, changes):
    request = replace(REQUEST, **changes)
    engine.cache.clear()
    wanted = uncached(engine, request)
    np.testing.assert_allclose(logits(engine, request), wanted, atol=2e-4)
    np.testing.assert_allclose(logits(engine, request), wanted, atol=2e-4)  # from the cache


def test_typing_in_the_middle_of_a_line_reads_at_most_two_tokens_a_key(engine):
    engine.cache.clear()
    assert engine.fill(REQUEST).tokens_read > 20
    typed, read = "", []
    for key in "th.join(self.name, 'views', 1 + 22":
        typed += key
        read.append(engine.fill(replace(REQUEST, near=REQUEST.near + typed)).tokens_read)
    assert max(read) <= 2
    assert sum(read) > 0


def test_the_one_that_decides_sees_the_rest_of_the_line_and_the_lines_below(engine):
    seen = [logits(engine, REQUEST)]
    seen.append(logits(engine, replace(REQUEST, suffix=("] + 2\n    return path\n", REQUEST.suffix[1]))))
    seen.append(logits(engine, replace(REQUEST, suffix=(")\n    return other\n", REQUEST.suffix[1]))))
    assert not np.allclose(seen[0], seen[1], atol=1e-3) and not np.allclose(seen[0], seen[2], atol=1e-3)


def test_a_document_that_spells_the_markers_is_read_as_text(engine):
    """The markers in the stack are those of the format, whatever the document says."""
    spelled = "".join(tiny.QWEN_MARKERS)
    request = replace(REQUEST, near=f"x = '{spelled}'\ny = '{spelled}", far=(spelled,), suffix=(spelled, spelled))
    cut = engine.decoder.contexts.cut(request)
    near = engine.surroundings(request, cut.read).near
    assert [token for token in near if token in range(500, 504)] == [SUFFIX, MIDDLE]
    assert engine.tokenizer.special_ids.isdisjoint(engine.surroundings(request, cut.read).text)


@pytest.mark.parametrize("multiline", [False, True])
def test_special_tokens_end_a_fill_and_are_never_written(engine, multiline):
    rules = engine.decoder.rules
    for follows in (")\n", "\n", "name(1)\n", ""):
        for written in ("x", "f(x"):
            stop = rules.stop_tokens(follows, multiline, written)
            assert stop is not None and {PREFIX, SUFFIX, MIDDLE, FILE, 0} <= set(stop.tokens.tolist())
    hidden_V = engine.decoder.rules.hidden_tokens(SlotLimits("", multiline))
    assert hidden_V[[0, *range(500, 504)]].all()
