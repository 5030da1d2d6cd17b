"""Speculation on pages gives the fills of the plain loop, token for token."""

import re
from dataclasses import replace
from itertools import islice

import pytest
import torch
from mercury_engine.api import MAX_SLOTS, Control, FillRequest
from mercury_engine.cuda.pass_plan import PassPlanner
from mercury_engine.decoding.autoregressive.ngram_lookup import NgramLookup, NgramMatch
from mercury_engine.errors import Cancelled, ModelCorrupt
from mercury_engine.kv_cache.cache import KEPT_BRANCHES
from mercury_engine.models import torch_network
from mercury_engine.models.paged_reader import LEAST_PAGES, PAGE_BUCKETS, PREFILL_ROWS, ROWS, PagedReader
from mercury_engine.models.paged_rows import NextToken, PagedRows, TokenList
from mercury_engine.prompt.budget import NEAR_TOKENS, REST_TOKENS, SEGMENT_TOKENS
from mercury_lab.engine import Engine

from tests.support import tiny
from tests.support.answering import answered
from tests.support.paged import SMALL_PAGE, alike, real_gaps, verifying
from tests.support.thorough import GAPS

REQUEST = FillRequest(
    near="import os\n\n\ndef view(self):\n    return ", suffix=("(1)\n", "\n\nclass View:\n"), max_slots=12
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.folder(tmp_path_factory.mktemp("tiny") / "model", rank=0)


@pytest.fixture
def engine(folder):
    return verifying(folder)


@pytest.fixture
def plain(folder):
    return tiny.load(folder)


@pytest.fixture
def passes(monkeypatch):
    """Of every pass the number of rows of each request that shared it."""
    seen, original = [], PagedReader._pass
    monkeypatch.setattr(
        PagedReader, "_pass", lambda self, group: (seen.append([len(r.ids) for r in group]), original(self, group))[1]
    )
    return seen


def test_real_fills_are_those_of_the_plain_loop_token_for_token(engine, plain, passes):
    texts, steps, each = set(), 0, GAPS // 4 or 4
    for request in real_gaps(each):
        found = engine.fill(request)
        alike(found, plain.fill(request))
        texts.add(found.text)
        steps += found.steps
    assert len(texts) > each
    assert sum(rows[0] <= ROWS for rows in passes) >= steps  # every step was a pass on pages


@pytest.mark.slow
def test_the_bundled_model_fills_what_its_plain_loop_does():
    plain = Engine.load(device="cpu", dtype=torch.float32)
    engine = verifying(None, page_size=64)
    for request in islice(real_gaps(1), GAPS or 2):
        few = replace(request, max_slots=4)
        alike(engine.fill(few), plain.fill(few))


@pytest.mark.gpu
def test_a_gpu_fills_what_the_plain_loop_does(folder, device, plain):
    if device.type == "cpu":
        pytest.skip("about compiled kernels")
    engine = verifying(folder, device, 64)
    for request in real_gaps(4):
        assert engine.fill(request).text == plain.fill(request).text


def test_gap_formats_are_verified_alike(tmp_path):
    folder = tiny.folder(tmp_path / "model", rank=0, markers=tiny.QWEN_MARKERS)
    engine, plain = verifying(folder), tiny.load(folder)
    for request in real_gaps(3, seed=1):
        alike(engine.fill(request), plain.fill(request))


def test_a_syntax_error_is_filled_differently_in_both_loops(engine, plain):
    differ = 0
    for request in real_gaps(5, seed=2):
        first = plain.fill(request)
        control = Control(check=lambda text, wrong=first.text: 0 if text == wrong else None)
        found = engine.fill(request, control)
        alike(found, plain.fill(request, control))
        differ += found.text != first.text
    assert differ


def test_several_requests_share_passes_and_none_changes_another(engine, plain, passes):
    requests = [*real_gaps(2, seed=3)][:5]
    expected = [plain.fill(request) for request in requests]
    engine = bigger(engine, 5)
    for request in requests:  # so that none has to wait for another one's prefill
        engine.fill(request)
    passes.clear()
    outcomes = answered(engine, requests)
    for request, fill in zip(requests, expected, strict=True):
        alike(outcomes[id(request)], fill)
    assert max(map(len, passes)) == 5
    assert sum(rows[0] <= ROWS for rows in passes) < sum(fill.steps for fill in expected)


def bigger(engine, fills):
    """The engine with pages for so many fills at once."""
    reader = PagedReader(engine.reader.decoder, fills * LEAST_PAGES, SMALL_PAGE)
    return Engine(replace(engine.parts, paged=reader))


def test_two_requests_at_one_place_have_a_stack_each(engine, plain):
    engine = bigger(engine, 2)
    requests = [replace(REQUEST, max_slots=slots) for slots in (12, 5)]
    outcomes = [*answered(engine, requests).values()]
    alike(outcomes[0], plain.fill(requests[0]))
    assert {fill.text for fill in outcomes} == {plain.fill(request).text for request in requests}


def test_typing_and_deleting_across_pages_reads_only_what_is_new(engine, plain, passes):
    builders = pytest.importorskip("mercury_lsp.context.context")  # a borrowed GPU machine has no tree-sitter
    documents = pytest.importorskip("mercury_lsp.documents.document")
    text, builder = tiny.SAMPLE * 2, builders.ContextBuilder()
    new = 0
    for cursor in (*range(900, 960, 3), *range(957, 890, -6), *range(890, 935, 9)):
        snapshot = documents.Document("file:///a.py", "python", 1, text).snapshot()
        request = replace(builder.build(snapshot, cursor, "a.py").request(), max_slots=6)
        passes.clear()
        found, expected = engine.fill(request), plain.fill(request)
        alike(found, expected)
        assert found.tokens_read <= expected.tokens_read + ROWS  # of text popped before, which fits the first pass
        new += found.tokens_read > ROWS
    assert new <= 3  # where the near prefix begins elsewhere
    assert max(len(s.pages) for side in engine.decoder.on_gpu.contexts._sides.values() for s in side.stacks) > 2


def test_an_accepted_suggestion_is_not_read_again(engine, passes):
    first = engine.fill(REQUEST)
    assert first.text
    passes.clear()
    stack = next(iter(engine.decoder.on_gpu.contexts._sides.values())).stacks[-1]
    held = len(stack.ids)
    engine.fill(replace(REQUEST, near=REQUEST.near + first.text))
    assert passes[0][0] <= 1 + engine.parts.options.lookahead + 2  # a word's end may be cut differently
    assert held > stack.near - 3


def test_deleting_much_keeps_the_longer_text_for_when_it_returns(engine, plain, passes):
    long = replace(REQUEST, near=REQUEST.near + "a.b.c.d(1, 2, 3) + " * 6)
    for request in (long, REQUEST, long):
        passes.clear()
        alike(engine.fill(request), plain.fill(request))
    assert max(rows[0] for rows in passes) <= ROWS


def watched(engine, monkeypatch, draft):
    """What happens, in order: launches of passes (L), their results (R), and lookups (l), which find this draft."""
    seen, reader = [], engine.decoder.on_gpu.reader

    def note(owner, name, event, do):
        monkeypatch.setattr(owner, name, lambda *given: (seen.append(event), do(*given))[1])

    note(reader.captures, "run", "L", reader.captures.run)
    note(reader, "_wait", "R", reader._wait)
    note(NgramLookup, "find", "l", lambda _, before: NgramMatch(draft=draft(before)))
    return seen


def test_the_next_draft_is_looked_up_while_the_pass_runs(engine, plain, monkeypatch):
    request = replace(REQUEST, near="x = 1", multiline=True, lookup_text=("nothing",))
    texts: list[list[int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NgramLookup, "find", lambda _, before: texts.append([*before]) or NgramMatch())
        expected = plain.fill(request)
    engine.fill(replace(request, max_slots=1))  # reads the context
    seen = watched(engine, monkeypatch, lambda before: texts[-1][len(before) :][:2])
    found = engine.fill(request)
    assert found.text == expected.text and found.steps <= expected.steps / 2
    assert re.fullmatch("l+(Ll+R)+(Ll*R)?", "".join(seen))  # none between a result and the next launch


def test_a_guess_that_proves_wrong_is_looked_up_again_and_changes_no_fill(engine, plain, monkeypatch):
    request = replace(REQUEST, near="x = 1", multiline=True, lookup_text=("nothing",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NgramLookup, "find", lambda _, before: NgramMatch())
        expected = plain.fill(request)
    engine.fill(replace(request, max_slots=1))
    seen = watched(engine, monkeypatch, lambda before: [7] * 2)
    found = engine.fill(request)
    assert (found.text, found.steps) == (expected.text, expected.steps)
    assert re.fullmatch("(l+Ll+R)+(l*Ll*R)", "".join(seen))


def test_once_the_pass_is_over_nothing_more_is_looked_up_ahead(engine, plain, monkeypatch):
    engine = bigger(engine, 3)
    requests = [replace(REQUEST, max_slots=slots) for slots in (12, 11, 10)]
    expected = [plain.fill(request) for request in requests]
    for request in requests:
        engine.fill(request)
    running, planned, after = [], [], PassPlanner.after
    monkeypatch.setattr(PassPlanner, "after", lambda self, *given: (planned.append(1), after(self, *given))[1])
    monkeypatch.setattr(PagedReader, "_is_running", lambda self: running.append(1) or len(running) % 3 == 1)
    outcomes = answered(engine, requests)
    for request, fill in zip(requests, expected, strict=True):
        alike(outcomes[id(request)], fill)
    assert 0 < len(planned) == -(-len(running) // 3)


def test_a_host_that_fails_while_a_pass_runs_still_waits_for_it(engine, plain, monkeypatch):
    seen = watched(engine, monkeypatch, lambda before: [])
    monkeypatch.setattr(PassPlanner, "after", lambda *_: (_ for _ in ()).throw(ValueError("a fault")))
    with pytest.raises(ValueError, match="a fault"):
        engine.fill(REQUEST)
    assert seen[-1] == "R"


def test_a_cancel_flag_takes_effect_before_the_next_pass_and_leaves_no_trace(engine, plain, passes, monkeypatch):
    control, original = Control(), PagedReader._pass
    monkeypatch.setattr(PagedReader, "_pass", lambda self, group: (original(self, group), control.cancel.set())[0])
    longest = max(real_gaps(3), key=lambda request: plain.fill(request).steps)
    with pytest.raises(Cancelled):
        engine.fill(longest, control)
    assert len(passes) == 1
    monkeypatch.setattr(PagedReader, "_pass", original)
    alike(engine.fill(longest), plain.fill(longest))
    assert not any(stack.taken for side in engine.decoder.on_gpu.contexts._sides.values() for stack in side.stacks)


def test_a_deadline_returns_what_is_accepted(engine, passes, monkeypatch):
    assert engine.fill(replace(REQUEST, deadline_ms=0)).steps == 0
    assert not passes
    whole = engine.fill(REQUEST).steps
    over = iter([0.0] * 2)  # when it arrives, and before the first pass
    monkeypatch.setattr("mercury_engine.scheduler.time.perf_counter", lambda: next(over, 2.0))
    assert 0 < engine.fill(replace(REQUEST, deadline_ms=1000)).steps < whole


def test_a_failed_pass_leaves_the_stack_as_it_was(engine, plain, monkeypatch):
    engine.fill(REQUEST)
    original = PagedReader._pass
    monkeypatch.setattr(PagedReader, "_pass", lambda *_: (_ for _ in ()).throw(ValueError("a fault")))
    with pytest.raises(ValueError, match="a fault"):
        engine.fill(replace(REQUEST, near=REQUEST.near + "os."))
    monkeypatch.setattr(PagedReader, "_pass", original)
    more = replace(REQUEST, near=REQUEST.near + "os.")
    alike(engine.fill(more), plain.fill(more))


def test_the_longest_context_fits_the_pages_of_a_request(engine):
    pool = PagedReader(engine.reader.decoder).pool
    head_line_and_rest = 2 * NEAR_TOKENS + REST_TOKENS + 2 * MAX_SLOTS
    far, near = pool.needed(1 + SEGMENT_TOKENS), pool.needed(head_line_and_rest)
    assert far + near <= PAGE_BUCKETS[-1]
    assert far + (1 + KEPT_BRANCHES) * near <= LEAST_PAGES


def test_without_room_a_fill_takes_the_plain_loop(engine, plain, passes, monkeypatch):
    monkeypatch.setattr(engine.decoder.on_gpu.contexts, "has_room", lambda: False)
    alike(engine.fill(REQUEST), plain.fill(REQUEST))
    assert not passes


def test_contexts_unused_for_longest_make_room(engine, plain):
    pool = engine.decoder.on_gpu.reader.pool
    for number in range(30):
        far = tuple(f"value_{number}_{part} = {part}\n" * 12 for part in range(4))
        request = replace(REQUEST, far=far, max_slots=3)
        alike(engine.fill(request), plain.fill(request))
    sides = engine.decoder.on_gpu.contexts._sides
    assert 1 < len(sides) < 30
    held = sum(len(side.run.pages) + sum(len(stack.pages) for stack in side.stacks) for side in sides.values())
    assert held + pool.free == LEAST_PAGES - 1
    engine.decoder.on_gpu.contexts.forget()
    assert pool.free == LEAST_PAGES - 1


def test_fills_that_are_observed_counted_or_many_take_the_plain_loop(engine, passes):
    tiny.watched(engine, REQUEST)
    engine.fill(replace(REQUEST, candidates=2))
    engine.fill(replace(REQUEST, max_steps=2))
    assert not passes


def test_after_loading_no_request_waits_for_a_capture(folder):
    engine = verifying(folder, page_size=64)
    engine.decoder.on_gpu.reader.prepare()
    assert len(engine.decoder.on_gpu.reader.captures._graphs) == 30
    for request in real_gaps(1):
        engine.fill(request)
    assert len(engine.decoder.on_gpu.reader.captures._graphs) == 30


def test_more_requests_than_a_pass_takes_and_prefill_are_parted(engine, passes):
    reader, lists = (
        engine.decoder.on_gpu.reader,
        [TokenList(n, lambda: torch.zeros(500).bool().numpy()) for n in range(70)],
    )
    pages = reader.pool.take(40)

    def rows(number):
        following = [NextToken(lists[(number * 2 + row) % 70]) for row in range(2)]
        return PagedRows(reader, [number, number], [pages[-1], pages[number]], [1], 0, [number], following)

    prefill = PagedRows(reader, list(range(100)), [pages[-1], *pages[30:38]], [1], 0)
    asked = [rows(0), prefill, *map(rows, range(1, 20))]
    together = reader.read_rows(asked)
    assert [len(group) for group in passes] == [1, 16, 4]
    assert together == [reader.read_rows([each])[0] for each in asked]
    assert not together[1].tokens


def test_weights_that_compute_nan_are_an_error(engine):
    with torch.no_grad():
        engine.reader.decoder.norm.fill_(float("nan"))
    with pytest.raises(ModelCorrupt, match="weights compute NaN"):
        engine.fill(REQUEST)


def test_off_a_gpu_there_are_no_pages(plain):
    assert plain.decoder.on_gpu is None
    assert torch_network.paged(plain.reader) is None
    assert plain.backend == "torch"
    assert PREFILL_ROWS[0] > ROWS
