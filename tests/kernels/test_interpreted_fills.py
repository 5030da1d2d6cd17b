"""With the kernels in Triton's interpreter, fills on pages are those of the plain loop, token for token.

Contexts are short, so that a pass takes a quarter of a second, but have several pages, tiles of rows and words, and
shares of a sum.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice, pairwise

import pytest
from mercury_engine.api import Control, FillRequest
from mercury_engine.errors import Cancelled
from mercury_engine.models.paged_reader import BATCHES, ROWS, PagedReader
from mercury_kernels.launch import INTERPRETED
from mercury_lab.evaluation.gaps import GAP_KINDS, gaps

from tests.support import tiny
from tests.support.answering import answered
from tests.support.interpreter import fast_interpreter, use_kernels
from tests.support.paged import SMALL_PAGE, alike, verifying
from tests.support.thorough import GAPS

pytestmark = pytest.mark.skipif(not INTERPRETED.value, reason="on a GPU every fill is made of kernels")

QUARTER = max(3, GAPS // 4)
"""Gaps that each test compares."""

AT_ONCE = (3, 4, 5)
"""Requests that run at once; more than four make the passes of sixteen."""

MOST_TOKENS = 40
"""Tokens of the longest near prefix, about."""


@pytest.fixture(scope="module", autouse=True)
def kernels():
    with fast_interpreter(), pytest.MonkeyPatch.context() as patch:
        use_kernels(patch)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.folder(tmp_path_factory.mktemp("tiny") / "model", rank=0)


@pytest.fixture
def engine(folder):
    return verifying(folder, fills=AT_ONCE[-1])


@pytest.fixture(scope="module")
def plain(folder):
    return tiny.load(folder)


@pytest.fixture
def passes(monkeypatch):
    """Of every pass the requests that shared it."""
    seen, original = [], PagedReader._pass
    monkeypatch.setattr(PagedReader, "_pass", lambda self, group: (seen.append(group), original(self, group))[1])
    return seen


def places(count: int, seed: int) -> Iterator[FillRequest]:
    """Different real gaps of every kind with short contexts of several pages; every other has text to look up."""
    kinds = [gaps(tiny.HELD_OUT, -(-count // len(GAP_KINDS)), seed, (kind,)) for kind in GAP_KINDS]
    for number, gap in enumerate(islice(chain.from_iterable(zip(*kinds, strict=True)), count)):
        it = gap.request
        yield replace(
            it,
            near=it.near[-2 * MOST_TOKENS + 13 * number % (2 * MOST_TOKENS - 20) :],
            far=tuple(block[-80:] for block in it.far[-1:]),
            suffix=(*it.suffix[:1], *(block[:60] for block in it.suffix[1:2])),
            lookup_text=(tiny.SAMPLE[:4000], tiny.SAMPLE[-4000:]) if number % 2 else (),
            max_slots=6,
            prose=True,  # see `real_gaps`
        )


def test_gaps_are_filled_alike(engine, plain, passes):
    steps = 0
    for request in places(QUARTER, 10):
        expected = plain.fill(request)
        alike(engine.fill(request), expected)
        steps += expected.steps
    deciding = [rows for group in passes for rows in group if rows.next]
    assert len(deciding) == steps
    far_and_near = [(len(rows.far), len(rows.pages) - len(rows.far)) for rows in deciding]
    assert all(far > 1 for far, _ in far_and_near)
    assert len({near for _, near in far_and_near}) > 1
    assert any(each.pairs for rows in deciding for each in rows.next)


def test_gaps_filled_at_once_are_filled_alike(engine, plain, passes):
    requests, sizes = [*places(QUARTER, 11)], []
    while requests:
        together = requests[: AT_ONCE[len(sizes) % len(AT_ONCE)]]
        del requests[: len(together)]
        for request in together if len(together) > BATCHES[1] else ():  # so that all of them share passes
            engine.fill(replace(request, max_slots=1))
        outcomes = answered(engine, together)
        for request in together:
            alike(outcomes[id(request)], plain.fill(request))
        sizes.append(len(together))
    shared = max(len(group) for group in passes)
    assert shared > (BATCHES[1] if max(sizes) > BATCHES[1] else BATCHES[0])


def test_gaps_reached_by_typing_and_deleting_across_pages_are_filled_alike(engine, plain, passes):
    moves, count = set(), 0
    for request in places(-(-QUARTER // 3), 12):
        pages, begin = [], request.near + "value = self.items["  # so that there is something to delete
        for near in (begin[:-14], begin + "0:count].copy(", begin[:-8]):
            at = replace(request, near=near)
            alike(engine.fill(at), plain.fill(at))
            stack = engine.decoder.on_gpu.contexts._sides.values()[-1].stacks[-1]
            pages.append(-(-stack.near // SMALL_PAGE))
        moves |= {after - before for before, after in pairwise(pages)}
        count += len(pages)
    assert count >= QUARTER
    assert {-1, 1} <= moves, "no page was entered or left"
    assert sum(len(rows.ids) > ROWS for group in passes for rows in group) <= count // 3 * 2  # mostly what is new


def test_a_fill_cancelled_in_the_middle_changes_neither_the_others_nor_the_next(engine, plain, monkeypatch):
    cancelled = 0
    requests, original = [*places(QUARTER, 13)], PagedReader._pass
    for number, request in enumerate(requests):
        control, other = Control(), requests[number - 1]

        def run(self, group, cancel=control.cancel):
            decided = original(self, group)
            if any(rows.next for rows in group):
                cancel.set()
            return decided

        monkeypatch.setattr(PagedReader, "_pass", run)
        outcomes = answered(engine, [request, other], controls=[control])
        outcome, beside = outcomes[id(request)], outcomes[id(other)]
        monkeypatch.setattr(PagedReader, "_pass", original)
        alike(beside, plain.fill(other))
        alike(engine.fill(request), plain.fill(request))
        cancelled += isinstance(outcome, Cancelled)
    assert cancelled >= QUARTER // 2  # the others took a single step
    assert not any(stack.taken for side in engine.decoder.on_gpu.contexts._sides.values() for stack in side.stacks)
