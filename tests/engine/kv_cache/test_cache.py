"""Caches change how much is read, never the answer."""

from copy import copy
from dataclasses import dataclass, field, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types
from mercury_engine.api import FillRequest
from mercury_engine.device.torch_network import TorchNetwork
from mercury_engine.kv_cache.cache import BlockCache, GapContext
from mercury_lab.engine import Engine, finished

from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document
from tests.support import tiny

LONG = "\n".join((tiny.CODE / "calculator" / "parser.py").read_text("utf-8").splitlines()[:200]) + "\n"

SHORT = "\n".join(tiny.SAMPLE.splitlines()[:45]) + "\n"


@pytest.fixture(scope="module", params=["blocks", "gap format"])
def engine(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache") / "model"
    if request.param == "blocks":
        return tiny.load(tiny.folder(folder))
    return tiny.load(tiny.folder(folder, rank=0, markers=tiny.QWEN_MARKERS))


@dataclass
class Editor:
    """A document being edited, and the requests for its cursor."""

    document: Document
    cursor: int = 0
    builder: ContextBuilder = field(default_factory=ContextBuilder)
    history: list[tuple[int, int, str]] = field(default_factory=list)

    def replace(self, start: int, end: int, new: str) -> tuple[int, int, str]:
        """Make an edit and put the cursor behind it; returns the edit that undoes it."""
        snapshot = self.document.snapshot()
        start, end = min(start, snapshot.length), min(end, snapshot.length)
        old = snapshot.slice(start, end)
        places = [types.Position(*snapshot.position_at(at)) for at in (start, end)]
        change = types.TextDocumentContentChangePartial(text=new, range=types.Range(*places))
        self.document.apply([change], self.document.version + 1)
        self.cursor = start + len(new)
        return start, start + len(new), old

    def edit(self, start: int, end: int, new: str) -> None:
        self.history.append(self.replace(start, end, new))

    def undo(self) -> None:
        if self.history:
            self.replace(*self.history.pop())

    def request(self, **overrides) -> FillRequest:
        snapshot = self.document.snapshot()
        return replace(self.builder.build(snapshot, self.cursor, "pkg/views.py").request(), **overrides)


def editor(text: str, cursor: int | None = None) -> Editor:
    return Editor(Document("file:///views.py", "python", 1, text), len(text) // 2 if cursor is None else cursor)


def context(engine: Engine, request: FillRequest, cache: BlockCache | None = None) -> GapContext:
    """Read what the engine would read for the request, through its own cache or another."""
    cut = engine.decoder.contexts.cut(request)
    reader = copy(engine.decoder.contexts)
    reader.cache = cache or reader.cache
    return finished(reader.read(request, cut.read), engine.reader)


def read(cache: BlockCache, far, near, suffix) -> GapContext:
    return finished(cache.context(far, (*near, 0), suffix), cache.network)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("type"), st.sampled_from(["x", " ", "\n    ", "self.view", "(", "é", "'''", "def f():\n"])),
        st.tuples(st.just("delete"), st.integers(1, 40)),
        st.tuples(st.just("cut"), st.tuples(st.integers(0, 1500), st.integers(1, 300))),
        st.tuples(st.just("jump"), st.integers(0, 1500)),
        st.tuples(st.just("undo"), st.none()),
    ),
    min_size=1,
    max_size=8,
)


def play(place: Editor, step: tuple) -> None:
    kind, value = step
    if kind == "type":
        place.edit(place.cursor, place.cursor, value)
    elif kind == "delete":
        place.edit(max(0, place.cursor - value), place.cursor, "")
    elif kind == "cut":
        place.edit(value[0], value[0] + value[1], "")
    elif kind == "jump":
        place.cursor = min(value, place.document.snapshot().length)
    else:
        place.undo()


@settings(max_examples=10)
@given(STEPS, st.sampled_from([160 << 20, 40_000]))
def test_after_any_edits_the_cached_fill_is_the_fill_from_scratch(engine, steps, budget):
    place = editor(SHORT)
    engine.cache.clear()
    fresh = engine.varied()  # the same model, a cache of its own
    engine.cache._blocks.limit = budget
    for step in steps:
        play(place, step)
        request = place.request(max_slots=4)
        cached, cached_steps = tiny.watched(engine, request)
        fresh.cache.clear()
        scratch, scratch_steps = tiny.watched(fresh, request)
        assert cached.text == scratch.text
        assert cached_steps and [s.text for s in cached_steps[-1]] == [s.text for s in scratch_steps[-1]]
        assert cached.confidence == pytest.approx(scratch.confidence, rel=1e-3, abs=1e-6)
        assert cached.tokens_read <= scratch.tokens_read
    engine.cache._blocks.limit = 160 << 20


@settings(max_examples=8)
@given(STEPS)
def test_cached_sides_hold_the_same_keys_and_values_as_fresh_ones(engine, steps):
    place = editor(SHORT)
    engine.cache.clear()
    other = BlockCache(engine.reader, engine.cache.start_id)
    for step in steps:
        play(place, step)
        request = place.request()
        cached = context(engine, request)
        other.clear()
        scratch = context(engine, request, other)
        for ours, theirs in zip([*cached.before, *cached.after], [*scratch.before, *scratch.after], strict=True):
            torch.testing.assert_close(ours.keys, theirs.keys, atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(ours.values, theirs.values, atol=1e-4, rtol=1e-4)


def test_typing_a_character_reads_at_most_two_tokens(engine):
    cursor = LONG.index("\n", 3000) + 1
    place = editor(LONG, cursor)
    engine.cache.clear()
    assert context(engine, place.request()).tokens_read > 100
    read = []
    for character in "    value = self._headers.get('content-type')  # is_boundary":
        place.edit(place.cursor, place.cursor, character)
        read.append(context(engine, place.request()).tokens_read)
    assert max(read) <= 2
    assert sum(read) > 5


def test_undo_reads_nothing(engine):
    place = editor(LONG, LONG.index("\n", 3000))
    engine.cache.clear()
    context(engine, place.request())
    place.edit(place.cursor, place.cursor, " + other(value)\n")
    assert context(engine, place.request()).tokens_read > 0
    place.undo()
    assert context(engine, place.request()).tokens_read == 0


def test_going_from_document_to_document_and_back_reads_nothing_however_much_was_typed_in_each(engine):
    engine.cache.clear()
    places = [editor(LONG[200 * number :], 2000 + number) for number in range(5)]
    for place in places:
        for text in ("first", " = ", "second", "(", "third"):
            place.edit(place.cursor, place.cursor, text)
            context(engine, place.request())
    for _ in range(2):
        assert [context(engine, place.request()).tokens_read for place in places] == [0] * 5


def test_blocks_stay_within_the_byte_budget_and_the_latest_are_kept():
    network = TorchNetwork(tiny.network(rank=0))
    one = 2 * 2 * 2 * 10 * 8 * 4  # keys and values, layers, heads, tokens, width, bytes
    cache = BlockCache(network, 0, budget=3 * one)
    blocks = [tuple(range(first, first + 10)) for first in range(1, 70, 10)]
    for block in blocks:
        read(cache, [block], (), [])
        assert cache._blocks.total <= cache.budget
        assert cache._blocks.total == sum(2 * b.keys.nbytes for b in cache._blocks.values())
    assert list(cache._blocks) == blocks[-3:]
    read(cache, [blocks[-3]], (), [])
    read(cache, [blocks[0]], (), [])
    assert cache._blocks.total == 3 * one


class OnGpu(TorchNetwork):
    """Says that it runs on a GPU, and counts its passes."""

    def __init__(self, decoder):
        super().__init__(decoder)
        self.device, self.passes = "cuda", 0

    def read_together(self, forwards):
        self.passes += len(forwards)
        return super().read_together(forwards)


def test_a_gpu_reads_many_blocks_in_one_pass_and_the_same_as_alone():
    made = tiny.network(rank=0)
    gpu = OnGpu(made)
    together, alone = BlockCache(gpu, 0), BlockCache(TorchNetwork(made), 0)
    far = [tuple(range(first, first + length)) for first, length in ((1, 30), (40, 200), (300, 1), (5, 190), (7, 400))]
    packed, plain = (read(cache, far, (9, 8, 7), [(20, 21, 22)]) for cache in (together, alone))
    assert gpu.passes == 1 + 2 + 1, "the start token; 512 tokens at most; the near prefix"
    assert packed.tokens_read == plain.tokens_read == together.tokens_read
    for mine, theirs in zip([*packed.before, *packed.after], [*plain.before, *plain.after], strict=True):
        torch.testing.assert_close(mine.keys, theirs.keys)
        torch.testing.assert_close(mine.values, theirs.values)


@pytest.mark.parametrize("layers", [2, 60])
def test_the_budget_holds_several_contexts_of_a_model_of_any_size(layers):
    network = TorchNetwork(tiny.network(rank=0, num_hidden_layers=layers, head_dim=64))
    assert BlockCache(network, 0).budget == max(64 << 20, 5_500 * 2 * layers * 2 * 64 * 4)


@pytest.mark.parametrize(("free_mb", "kept_tokens"), [(80_000, 20_000), (1_000, 8_533), (100, 5_500)])
def test_on_a_gpu_the_budget_follows_the_free_memory(monkeypatch, free_mb, kept_tokens):
    network = OnGpu(tiny.network(rank=0, num_hidden_layers=15, head_dim=64))
    monkeypatch.setattr(
        "mercury_engine.kv_cache.cache.free_bytes", lambda device: free_mb * 2**20 if device == "cuda" else None
    )
    assert BlockCache(network, 0).budget // (2 * 15 * 2 * 64 * 4) == kept_tokens


def test_a_cached_side_is_not_dropped_while_the_other_is_read():
    cache = BlockCache(TorchNetwork(tiny.network(rank=0)), 0)
    a, b, c = (tuple(range(first, first + 10)) for first in (1, 11, 21))
    first = read(cache, [a], (), [b])
    read(cache, [c], (), [])  # the end of a file: no suffix
    again = read(cache, [a], (), [b])
    assert torch.equal(again.before[0].keys, first.before[0].keys)
    assert torch.equal(again.after[0].keys, first.after[0].keys)


def test_what_is_read_in_a_pause_is_seen_by_the_next_fill(engine):
    engine.cache.clear()
    place = editor(LONG)
    engine.fill(place.request(unread_limit=256, max_slots=4))
    engine.fill(place.request(max_steps=0))  # reads, and fills nothing
    fill = engine.fill(place.request(unread_limit=256, max_slots=4))
    assert (fill.tokens_read, fill.tokens_unread) == (0, 0)
    engine.cache.clear()
    scratch = engine.fill(place.request(max_slots=4))
    assert fill.text == scratch.text and fill.confidence == pytest.approx(scratch.confidence, rel=1e-3)
