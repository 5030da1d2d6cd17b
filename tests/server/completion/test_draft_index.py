"""The index of lines to draft from: kept up to date edit by edit, in small slices, within its budget."""

import gc
import tracemalloc
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from mercury_lsp.completion.drafting.changed_range import INDEX_SLICE_CHARS, lines_of, next_slice
from mercury_lsp.completion.drafting.lines import LineIndex
from mercury_lsp.completion.drafting.tracking import TrackedDocument
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.documents.document import Edit
from tests.support.draft_desk import FAR, URI, DraftDesk


def test_a_deleted_line_is_no_draft():
    desk = DraftDesk()
    desk.open("value = load(gone)\n" + FAR + "value = load(")
    assert desk.draft(len(desk.text())) == "gone)"
    desk.replace(0, len("value = load(gone)\n"), "")
    assert desk.draft(len(desk.text())) == ""


def test_a_line_that_occurs_twice_stays_when_one_is_deleted():
    desk = DraftDesk()
    desk.open("value = load(kept)\n" + FAR + "value = load(kept)\n" + FAR + "value = load(")
    desk.replace(0, len("value = load(kept)\n"), "")
    assert desk.draft(len(desk.text())) == "kept)"


def test_an_edited_line_of_20000_is_indexed_at_the_next_edit_elsewhere_or_pause():
    desk = DraftDesk()
    desk.open(CODE := "".join(f"value_{n} = load({n})\n" for n in range(20_000)))
    assert desk.index.lines_read == 20_000
    middle = CODE.index("value_10000")
    for count, character in enumerate("value = load("):
        desk.replace(middle + count, middle + count, character)
        assert desk.index.lines_read == 20_000 and desk.index.pending
    desk.replace(0, 0, "first, ")
    assert desk.index.lines_read == 20_001 and desk.index.pending
    desk.work()
    assert desk.index.lines_read == 20_002


def test_text_typed_in_a_line_is_a_draft_once_another_line_is_edited():
    desk = DraftDesk()
    desk.open("value = \n" + FAR + "value = ")
    desk.replace(len("value = "), len("value = "), "load(renewed)")
    desk.replace(len(desk.text()), len(desk.text()), "load(")
    assert desk.draft(len(desk.text())) == "renewed)"


def test_a_line_break_indexes_the_two_lines_it_makes():
    desk = DraftDesk()
    desk.open("first = load(1)\nsecond = load(2)\n")
    desk.replace(len("first = "), len("first = "), "\n")
    desk.work()
    assert desk.index.lines_read == 2 + 2


def test_replacing_a_document_indexes_only_lines_near_the_difference():
    desk = DraftDesk()
    text = "".join(f"value_{n} = load({n})\n" for n in range(5_000))
    desk.open(text)
    desk.replace_all(text.replace("load(2500)", "store(2500)"))
    desk.work()
    assert 5_000 < desk.index.lines_read <= 5_000 + 30
    once = desk.index.lines_read
    desk.replace_all(desk.text())
    assert desk.index.lines_read == once and not desk.index.pending


def test_edits_that_do_not_fit_the_new_text_are_found_by_comparison():
    desk = DraftDesk()
    desk.open(FAR + "value = load(old)\n" + FAR + "value = load(")
    start, end = types.Position(120, len("value = load(")), types.Position(120, len("value = load(old"))
    change = types.TextDocumentContentChangePartial(types.Range(start, end), "renewed")
    desk.documents.change(URI, 2, [change])
    desk.index.edited(URI, [Edit(0, "", "x")])
    desk.index.update(desk.documents.snapshot(URI))
    desk.work()
    assert desk.draft(len(desk.text())) == "renewed)"


def test_a_long_document_is_indexed_slice_by_slice():
    desk = DraftDesk()
    text = "".join(f"value_{n} = load({n})\n" for n in range(20_000))
    desk.open(text, work=False)
    assert desk.index.lines_read == 0 and desk.index.pending
    slices = 0
    while desk.index.pending:
        before = desk.index.lines_read
        desk.index.work()
        slices += 1
        assert desk.index.lines_read - before <= INDEX_SLICE_CHARS / len("value_0 = load(0)\n")
    assert desk.index.lines_read == 20_000 and slices <= 1.1 * len(text) / INDEX_SLICE_CHARS + 1


def test_a_document_may_be_edited_while_it_is_indexed():
    desk, fresh = DraftDesk(), DraftDesk()
    text = "".join(f"value_{n} = load({n})\n" for n in range(1_000))
    desk.open(text, work=False)
    for _ in range(3):
        desk.index.work()
        read = desk.index.lines_read
        desk.replace(0, 0, "first, ")
        assert desk.index.lines_read == read + 1
        desk.replace(len(text), len(text), "last, ")
        assert desk.index.lines_read == read + 1
    desk.work()
    fresh.open(desk.text())
    assert desk.index.bytes == fresh.index.bytes


def test_lines_longer_than_a_slice_are_skipped():
    desk = DraftDesk()
    desk.open("value = load(short)\n" + "x" * 50_000 + "\nvalue = store(short)\n" + FAR + "value = store(")
    assert desk.draft(len(desk.text())) == "short)"
    assert desk.index.lines_read == 2 + 120 + 1


def test_a_large_paste_and_its_deletion_are_left_to_slices():
    desk = DraftDesk()
    desk.open("value = load(first)\n")
    empty = desk.index.bytes
    pasted = "".join(f"value_{n} = load({n})\n" for n in range(1_000))
    desk.replace(0, 0, pasted)
    assert desk.index.lines_read == 1 and desk.index.pending
    desk.work()
    assert desk.index.lines_read >= 1 + 1_000
    full = desk.index.bytes
    desk.replace(0, len(pasted), "")
    assert desk.index.bytes >= full * 0.9 and desk.index.pending
    desk.work()
    assert desk.index.bytes == empty


def test_a_closed_document_drafts_nothing_and_frees_its_memory():
    desk = DraftDesk()
    desk.open("".join(f"value = load({n})\n" for n in range(1_000)), "file:///other.py")
    desk.open("value = load(")
    desk.index.forget("file:///other.py")
    assert desk.draft(len("value = load(")) == ""
    desk.index.forget(URI)
    desk.work()
    assert desk.index.bytes == 0


def test_beyond_its_budget_the_index_drops_the_oldest_lines():
    desk = DraftDesk(budget=200_000)
    for name in range(6):
        desk.open("".join(f"value_{name}_{n} = load({n}, {name})\n" for n in range(300)), f"file:///{name}.py")
        assert desk.index.bytes <= 200_000
    desk.open("value_5_250 = ", "file:///last.py")
    assert desk.draft(len("value_5_250 = "), "file:///last.py") == "load(250, 5)"
    desk.open("value_0_250 = ", "file:///first.py")
    assert desk.draft(len("value_0_250 = "), "file:///first.py") != "load(250, 0)"


def test_editing_dropped_lines_keeps_the_index_within_its_budget():
    desk = DraftDesk(budget=50_000)
    desk.open("".join(f"value_{n} = load({n})\n" for n in range(1_000)))
    for _ in range(50):
        desk.replace(0, len(desk.text()) // 10, "some_value = other\n")
        desk.work()
        assert 0 < desk.index.bytes <= 50_000
    desk.index.forget(URI)
    desk.work()
    assert desk.index.bytes == 0


def test_a_line_added_again_stays_as_long_as_a_new_one():
    index = LineIndex(40_000)
    index.add(1, "the line added again")
    for number in range(10):
        index.add(1, f"value_{number} = load({number})")
    index.add(1, "the line added again")
    while index.find(1, "value_9 = load(9)"):
        number += 1
        index.add(1, f"value_{number} = load({number})")
    assert index.find(1, "the line added again")


@pytest.mark.parametrize("budget", [500_000, 10**9], ids=["full", "never full"])
def test_the_memory_estimate_is_no_less_than_actual_use(budget: int):
    lines = [f"def function_{n}(self, first_{n % 7}, value_{n}: int) -> None: call({n})" for n in range(3_000)]
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        index = LineIndex(budget)
        for line in lines:
            index.add(1, line)
        for above, below in pairwise(lines):
            index.link(1, above, below)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert index.bytes <= budget
    assert taken <= 1.05 * index.bytes


PIECES = st.lists(
    st.sampled_from(
        [
            "a",
            "\n",
            "\r",
            "\r\n",
            "    ",
            "value = load(1)\n",
            "other = 2\r\n",
            "long " * 30 + "\n",
            "x" * 1600,
            "é😀\n",
        ]
    ),
    max_size=25,
).map("".join)
EDIT = st.tuples(st.floats(0, 1), st.floats(0, 1), PIECES, st.booleans(), st.integers(0, 3))


@settings(max_examples=150)
@given(PIECES, st.lists(EDIT, max_size=6))
def test_after_any_edits_exactly_the_lines_outside_the_unindexed_range_are_indexed(text, edits):
    documents, tracked, held = OpenDocuments(), TrackedDocument(1), Counter[str]()
    documents.open(types.TextDocumentItem(URI, "plaintext", 1, text))
    for start, end, new, is_whole, slices in [(0.0, 0.0, "", False, 1), *edits]:
        if is_whole:
            tracked.edited(documents.change(URI, 2, [types.TextDocumentContentChangeWholeDocument(new)]), 1)
        else:
            tracked.edited(documents.change(URI, 2, _two_changes(documents.snapshot(URI), start, end, new)), 1)
        old, source = tracked.source, documents.snapshot(URI).source
        removed, added = tracked.advance(source)
        for each in removed:
            held.subtract(_indexed(old, *each))
        held.update(_indexed(source, *added))
        for _ in range(slices):
            low, high = tracked.unindexed
            stop = next_slice(source, low, high)[1]
            held.update(_indexed(source, low, stop))
            tracked.mark_indexed(stop)
        assert min(held.values(), default=0) >= 0
        assert +held == Counter(line for each in tracked.indexed() for line in _indexed(source, *each))
        assert tracked.unindexed[0] <= tracked.unindexed[1] <= source.length


@settings(max_examples=60)
@given(PIECES, st.lists(EDIT, max_size=5))
def test_after_any_edits_the_index_is_as_large_as_one_built_afresh(text, edits):
    desk, fresh = DraftDesk(), DraftDesk()
    desk.open(text)
    for start, end, new, is_whole, slices in edits:
        if is_whole:
            desk.replace_all(new)
        else:
            desk.replace(*_range(desk.text(), start, end), new)  # type: ignore[call-arg]
        for _ in range(slices):
            desk.index.work()
    desk.work()
    fresh.open(desk.text())
    assert desk.index.bytes == fresh.index.bytes


def _range(text, start, end):
    return sorted((int(start * len(text)), int(end * len(text))))


def _two_changes(snapshot, start, end, new):
    """A replacement and an insertion at the start of the document, as one message."""
    low, high = _range(snapshot.text, start, end)
    span = types.Range(types.Position(*snapshot.position_at(low)), types.Position(*snapshot.position_at(high)))
    begin = types.Range(types.Position(0, 0), types.Position(0, 0))
    return [types.TextDocumentContentChangePartial(span, new), types.TextDocumentContentChangePartial(begin, new[:3])]


def _indexed(source, start, end):
    """The lines that the index takes from a range."""
    found = []
    while start < end:
        text, start = next_slice(source, start, end)
        found += lines_of(text)
    return found
