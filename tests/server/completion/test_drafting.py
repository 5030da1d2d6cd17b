"""Drafts: lines of open documents that go on like the cursor's line, and what is left of an old suggestion."""

import gc
import tracemalloc
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from mercury_lsp.completion.drafting import DraftIndex, old_suggestion
from mercury_lsp.completion.drafting.changes import INDEX_SLICE_CHARS, lines_of, next_slice
from mercury_lsp.completion.drafting.lines import LineIndex
from mercury_lsp.completion.drafting.old_suggestion import remaining
from mercury_lsp.completion.drafting.tracking import TrackedDocument
from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.completion.typing_through import SuggestionAnchor
from mercury_lsp.context.open_documents import OpenDocuments
from mercury_lsp.documents.document import Edit

URI = "file:///sample.py"
FAR = "".join(f"unrelated_{n} = {n}\n" for n in range(120))
"""Enough lines that what stands before them is not near the cursor behind them."""


class Editor:
    """Open documents and the index that is told of them."""

    def __init__(self, budget: int = 10_000_000):
        self.documents = OpenDocuments()
        self.index = DraftIndex(budget)

    def open(self, text: str, uri: str = URI, work: bool = True) -> None:
        self.documents.open(types.TextDocumentItem(uri, "plaintext", 1, text))
        self.index.update(self.documents.snapshot(uri))
        if work:
            self.work()

    def work(self) -> None:
        while self.index.pending:
            self.index.work()

    def replace(self, start: int, end: int, text: str, uri: str = URI) -> None:
        """Edit by offsets."""
        old = self.documents.snapshot(uri)
        span = types.Range(types.Position(*old.position_at(start)), types.Position(*old.position_at(end)))
        change = types.TextDocumentContentChangePartial(span, text)
        self.index.edited(uri, self.documents.change(uri, old.version + 1, [change]))
        self.index.update(self.documents.snapshot(uri))

    def replace_all(self, text: str, uri: str = URI) -> None:
        change = types.TextDocumentContentChangeWholeDocument(text)
        version = self.documents.snapshot(uri).version + 1
        self.index.edited(uri, self.documents.change(uri, version, [change]))
        self.index.update(self.documents.snapshot(uri))

    def text(self, uri: str = URI) -> str:
        return self.documents.snapshot(uri).text

    def draft(self, offset: int, uri: str = URI) -> str:
        position = types.Position(*self.documents.snapshot(uri).position_at(offset))
        return self.index.draft(self.documents.context_at(uri, position)[0])


def draft(text: str, *others: str) -> str:
    """The draft at the bar, with other documents opened before."""
    editor = Editor()
    for number, other in enumerate(others):
        editor.open(other, f"file:///other{number}.py")
    editor.open(text.replace("|", "", 1))
    return editor.draft(text.index("|"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("total = compute(first, second)\ntotal = compute(|\n", "first, second)"),
        ("total = compute(first, second)\ntotal = comp|\n", "ute(first, second)"),
        ("total = compute(first, second)\nother = [compute|\n", "(first, second)"),
        ("total = compute(first, second)\ntotal =|\n", " compute(first, second)"),
        ("total=compute(first,second)\n    total = |\n", "compute(first,second)"),
        ("return None\nretu|", "rn None"),
        ("\twhile (ready) {\n  while (|", "ready) {"),
    ],
)
def test_a_line_goes_on_like_one_that_begins_alike_blanks_aside(text: str, expected: str):
    assert draft(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("self.width = width\nself.height = |", "height"),
        ("self.width = width\nself.height = he|", "ight"),
        ("def get_width(self): return self._width\ndef get_height(|", "self): return self._height"),
        ("self.MAX_WIDTH = Limits(width=3)\nself.MAX_HEIGHT = |", "Limits(height=3)"),
        ("layer1 = build(options[1], 10)\nlayer2 = build(|", "options[2], 10)"),
        (
            "def set_width(self, width):\n    self._width = width\n\ndef set_height(self, height):\n    self.|",
            "_height = height",
        ),
    ],
)
def test_names_that_differ_systematically_are_carried_over(text: str, expected: str):
    assert draft(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "|",
        "x = 1\nx = |",
        "foo(bar)\nfo|",
        "))) + 1\n))) |",
        "total = compute(first)\nsomething.else_(|",
        "total = compute(first)\ntotal = consider|",
        "total = compute(first)\ntotal = compute(first)|",
        "total = compute(first)\ntotal = comp|ute(first)",
    ],
    ids=["empty", "too short", "three letters", "signs only", "not alike", "other word", "line ends", "own line"],
)
def test_nothing_is_drafted_when_no_line_matches_well(text: str):
    assert draft(text) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("total = compute(first, second)\ntotal = compute(|)", "first, second"),
        ("total = compute(first, second)\nprint(compute(|))", "first, second"),
        ("if compute(first[0], second):\nif compute(|):", "first[0], second"),
        ("print(compute(first))\ntotal = compute(|", "first)"),
        ("    first, second))\nprint(first, |", "second))"),
        ("total = compute(first, second)\ntotal = compute(| * 3", ""),
    ],
)
def test_the_rest_fits_the_brackets_and_the_rest_of_the_cursors_line(text: str, expected: str):
    assert draft(text) == expected


def test_the_line_under_the_cursor_is_never_its_own_draft():
    assert draft("compute(first) + compute(|\n") == ""
    assert draft("compute(first) + compute(|\n", "compute(second)\n") == "second)"


def test_the_longest_match_goes_before_a_near_one():
    text = "self.total = compute(far, away)\n" + FAR + "compute(near)\nself.total = compute(|\n"
    assert draft(text) == "far, away)"


def test_among_equals_near_lines_go_before_the_document_and_that_before_others():
    near, far, other = ("value = load(near)\n", "value = load(far)\n", "value = load(other)\n")
    assert draft(far + FAR + near + "value = load(|", other) == "near)"
    assert draft(far + FAR + "value = load(|", other) == "far)"
    assert draft(FAR + "value = load(|", other) == "other)"


def test_of_other_documents_the_one_edited_last_goes_first():
    editor = Editor()
    editor.open(FAR + "value = load(own)\n" + FAR + "value = load(")
    for name in ("a", "b", "c"):
        editor.open(f"value = load({name})\nvalue = store({name})\n" + FAR, name)
    for name in ("a", "b"):
        editor.replace(len(editor.text(name)), len(editor.text(name)), "x = 1", name)
    assert editor.draft(len(editor.text())) == "own)"
    editor.replace(len(editor.text()) - len("load("), len(editor.text()), "store(")
    assert editor.draft(len(editor.text())) == "b)"


def test_among_equals_a_match_from_the_start_of_the_line_goes_first():
    assert draft("compute(first)\n" + FAR + "x.compute(second)\ncompute(|\n") == "first)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for key in table:\n    print(key)\n" + FAR + "for key in table:\n    |\n", "print(key)"),
        ("for key in table:\n    print(key)\n" + FAR + "  for key in table:\n|\n", "      print(key)"),
        ("    done = True\nreturn done\n" + FAR + "        done = True\n\n    |", "return done"),
        ("for key in table:\n    print(key)\n" + FAR + "for key in table:\n        |\n", ""),
        ("for key in table:\n    print(key)\n" + FAR + "for key in table:\n    |\n    print(key)\n", ""),
        ("for key in table:\n    print(key)\n" + FAR + "for other in table:\n    |\n", ""),
        ("for key in table:\n    print(key)\n\nfor other in table:\n    |\n", "print(other)"),
        ("for key in table:\n    print(1)\n\nfor other in table:\n    |\n", ""),
        ("def set_width(self):\n    return self.width\n\ndef set_height(self):\n    |", "return self.height"),
    ],
    ids=[
        "indented",
        "blanks lacking",
        "dedented",
        "indented deeper",
        "there already",
        "far",
        "other name",
        "name not used",
        "in part",
    ],
)
def test_a_blank_line_becomes_what_stood_below_a_line_like_the_one_above(text: str, expected: str):
    assert draft(text) == expected


def test_a_deleted_line_is_no_draft():
    editor = Editor()
    editor.open("value = load(gone)\n" + FAR + "value = load(")
    assert editor.draft(len(editor.text())) == "gone)"
    editor.replace(0, len("value = load(gone)\n"), "")
    assert editor.draft(len(editor.text())) == ""


def test_a_line_that_stands_twice_stays_when_one_goes():
    editor = Editor()
    editor.open("value = load(kept)\n" + FAR + "value = load(kept)\n" + FAR + "value = load(")
    editor.replace(0, len("value = load(kept)\n"), "")
    assert editor.draft(len(editor.text())) == "kept)"


def test_a_line_of_20000_is_read_once_it_is_typed_and_the_user_goes_elsewhere_or_pauses():
    editor = Editor()
    editor.open(CODE := "".join(f"value_{n} = load({n})\n" for n in range(20_000)))
    assert editor.index.lines_read == 20_000
    middle = CODE.index("value_10000")
    for count, character in enumerate("value = load("):
        editor.replace(middle + count, middle + count, character)
        assert editor.index.lines_read == 20_000 and editor.index.pending
    editor.replace(0, 0, "first, ")
    assert editor.index.lines_read == 20_001 and editor.index.pending
    editor.work()
    assert editor.index.lines_read == 20_002


def test_what_was_typed_in_a_line_is_a_draft_as_soon_as_something_is_typed_in_another():
    editor = Editor()
    editor.open("value = \n" + FAR + "value = ")
    editor.replace(len("value = "), len("value = "), "load(renewed)")
    editor.replace(len(editor.text()), len(editor.text()), "load(")
    assert editor.draft(len(editor.text())) == "renewed)"


def test_a_new_line_reads_the_two_it_makes():
    editor = Editor()
    editor.open("first = load(1)\nsecond = load(2)\n")
    editor.replace(len("first = "), len("first = "), "\n")
    editor.work()
    assert editor.index.lines_read == 2 + 2


def test_a_replaced_document_reads_only_lines_near_what_differs():
    editor = Editor()
    text = "".join(f"value_{n} = load({n})\n" for n in range(5_000))
    editor.open(text)
    editor.replace_all(text.replace("load(2500)", "store(2500)"))
    editor.work()
    assert 5_000 < editor.index.lines_read <= 5_000 + 30
    once = editor.index.lines_read
    editor.replace_all(editor.text())
    assert editor.index.lines_read == once and not editor.index.pending


def test_edits_that_do_not_fit_the_new_text_are_found_by_comparison():
    editor = Editor()
    editor.open(FAR + "value = load(old)\n" + FAR + "value = load(")
    start, end = types.Position(120, len("value = load(")), types.Position(120, len("value = load(old"))
    change = types.TextDocumentContentChangePartial(types.Range(start, end), "renewed")
    editor.documents.change(URI, 2, [change])
    editor.index.edited(URI, [Edit(0, "", "x")])
    editor.index.update(editor.documents.snapshot(URI))
    editor.work()
    assert editor.draft(len(editor.text())) == "renewed)"


def test_opening_a_long_document_reads_nothing_at_once_and_then_slice_by_slice():
    editor = Editor()
    text = "".join(f"value_{n} = load({n})\n" for n in range(20_000))
    editor.open(text, work=False)
    assert editor.index.lines_read == 0 and editor.index.pending
    slices = 0
    while editor.index.pending:
        before = editor.index.lines_read
        editor.index.work()
        slices += 1
        assert editor.index.lines_read - before <= INDEX_SLICE_CHARS / len("value_0 = load(0)\n")
    assert editor.index.lines_read == 20_000 and slices <= 1.1 * len(text) / INDEX_SLICE_CHARS + 1


def test_a_document_may_be_edited_while_it_is_read():
    editor, fresh = Editor(), Editor()
    text = "".join(f"value_{n} = load({n})\n" for n in range(1_000))
    editor.open(text, work=False)
    for _ in range(3):
        editor.index.work()
        read = editor.index.lines_read
        editor.replace(0, 0, "first, ")
        assert editor.index.lines_read == read + 1
        editor.replace(len(text), len(text), "last, ")
        assert editor.index.lines_read == read + 1
    editor.work()
    fresh.open(editor.text())
    assert editor.index.bytes == fresh.index.bytes


def test_lines_longer_than_a_slice_are_passed_over():
    editor = Editor()
    editor.open("value = load(short)\n" + "x" * 50_000 + "\nvalue = store(short)\n" + FAR + "value = store(")
    assert editor.draft(len(editor.text())) == "short)"
    assert editor.index.lines_read == 2 + 120 + 1


def test_a_large_paste_and_its_deletion_are_left_to_slices():
    editor = Editor()
    editor.open("value = load(first)\n")
    empty = editor.index.bytes
    pasted = "".join(f"value_{n} = load({n})\n" for n in range(1_000))
    editor.replace(0, 0, pasted)
    assert editor.index.lines_read == 1 and editor.index.pending
    editor.work()
    assert editor.index.lines_read >= 1 + 1_000
    full = editor.index.bytes
    editor.replace(0, len(pasted), "")
    assert editor.index.bytes >= full * 0.9 and editor.index.pending
    editor.work()
    assert editor.index.bytes == empty


def test_a_forgotten_document_drafts_nothing_and_leaves_no_memory():
    editor = Editor()
    editor.open("".join(f"value = load({n})\n" for n in range(1_000)), "file:///other.py")
    editor.open("value = load(")
    editor.index.forget("file:///other.py")
    assert editor.draft(len("value = load(")) == ""
    editor.index.forget(URI)
    editor.work()
    assert editor.index.bytes == 0


def test_beyond_its_budget_the_index_drops_the_lines_that_came_first():
    editor = Editor(budget=200_000)
    for name in range(6):
        editor.open("".join(f"value_{name}_{n} = load({n}, {name})\n" for n in range(300)), f"file:///{name}.py")
        assert editor.index.bytes <= 200_000
    editor.open("value_5_250 = ", "file:///last.py")
    assert editor.draft(len("value_5_250 = "), "file:///last.py") == "load(250, 5)"
    editor.open("value_0_250 = ", "file:///first.py")
    assert editor.draft(len("value_0_250 = "), "file:///first.py") != "load(250, 0)"


def test_edits_of_lines_that_made_room_for_others_leave_the_index_within_its_budget():
    editor = Editor(budget=50_000)
    editor.open("".join(f"value_{n} = load({n})\n" for n in range(1_000)))
    for _ in range(50):
        editor.replace(0, len(editor.text()) // 10, "some_value = other\n")
        editor.work()
        assert 0 < editor.index.bytes <= 50_000
    editor.index.forget(URI)
    editor.work()
    assert editor.index.bytes == 0


def test_a_line_that_comes_again_stays_as_long_as_a_new_one():
    index = LineIndex(40_000)
    index.add(1, "the line that comes again")
    for number in range(10):
        index.add(1, f"value_{number} = load({number})")
    index.add(1, "the line that comes again")
    while index.find(1, "value_9 = load(9)"):
        number += 1
        index.add(1, f"value_{number} = load({number})")
    assert index.find(1, "the line that comes again")


@pytest.mark.parametrize("budget", [500_000, 10**9], ids=["full", "never full"])
def test_the_estimate_of_memory_is_no_less_than_what_is_taken(budget: int):
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
def test_after_any_edits_exactly_the_lines_outside_the_gap_are_indexed(text, edits):
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
            low, high = tracked.gap
            stop = next_slice(source, low, high)[1]
            held.update(_indexed(source, low, stop))
            tracked.fill(stop)
        assert min(held.values(), default=0) >= 0
        assert +held == Counter(line for each in tracked.indexed() for line in _indexed(source, *each))
        assert tracked.gap[0] <= tracked.gap[1] <= source.length


@settings(max_examples=60)
@given(PIECES, st.lists(EDIT, max_size=5))
def test_edits_leave_the_index_as_large_as_one_made_of_the_text_as_it_is(text, edits):
    editor, fresh = Editor(), Editor()
    editor.open(text)
    for start, end, new, is_whole, slices in edits:
        if is_whole:
            editor.replace_all(new)
        else:
            editor.replace(*_range(editor.text(), start, end), new)
        for _ in range(slices):
            editor.index.work()
    editor.work()
    fresh.open(editor.text())
    assert editor.index.bytes == fresh.index.bytes


def _range(text, start, end):
    return sorted((int(start * len(text)), int(end * len(text))))


def _two_changes(snapshot, start, end, new):
    """A replacement and an insertion at the start of the document, as one message."""
    low, high = _range(snapshot.text, start, end)
    span = types.Range(types.Position(*snapshot.position_at(low)), types.Position(*snapshot.position_at(high)))
    begin = types.Range(types.Position(0, 0), types.Position(0, 0))
    return [types.TextDocumentContentChangePartial(span, new), types.TextDocumentContentChangePartial(begin, new[:3])]


def _indexed(source, start, end):
    """The lines of a range as the index reads them."""
    found = []
    while start < end:
        text, start = next_slice(source, start, end)
        found += lines_of(text)
    return found


@dataclass
class History:
    """What was shown last."""

    shown: SuggestionAnchor | None


@pytest.mark.parametrize(
    ("suggested", "typed", "expected"),
    [
        ("compute(x, y)", "compute(a", ", y)"),
        ("compute(x, y)", "consume(", "x, y)"),
        ("x = foo(b, c)", "x = bar(b, ", "c)"),
        ("self.items = items", "self.items += ", "items"),
        ("first, second, third)", "second", ", third)"),
        ("first, second, third)", "sec", "ond, third)"),
        ("for a in items:\n    print(a)", "for b in items:\n", "    print(b)"),
        ("for a in items:\n    print(a)", "for key in items:", "\n    print(key)"),
        ("width = self.width\nreturn width", "height", " = self.height\nreturn height"),
    ],
)
def test_what_may_still_fit_of_a_suggestion_is_left_of_it(suggested: str, typed: str, expected: str):
    assert remaining(suggested, typed) == expected


@pytest.mark.parametrize(
    ("suggested", "typed"),
    [
        ("compute(x, y)", "comp"),
        ("compute(x)", "compute(x) + 1"),
        ("compute(x, y)", "yield"),
        ("compute(x, y)", "["),
        ("return x", "return y"),
        ("compute(x, y)", "compute(" + "a + " * 30),
    ],
    ids=["its start", "all of it", "other word", "other sign", "nothing left", "much else"],
)
def test_nothing_is_left_of_a_suggestion_that_was_followed_or_left_behind(suggested: str, typed: str):
    assert remaining(suggested, typed) == ""


def test_the_old_suggestion_counts_only_where_its_typed_text_ends():
    editor = Editor()
    editor.open("x = compute(a")
    suggestion = Suggestion("1", "compute(x, y)", (0, 4), (0, 4), 0.9, 1, 1.0)
    snapshot = editor.documents.snapshot(URI)
    assert old_suggestion(History(SuggestionAnchor(4, 13, suggestion)), snapshot, 13) == ", y)"
    assert old_suggestion(History(SuggestionAnchor(4, 12, suggestion)), snapshot, 13) == ""
    assert old_suggestion(History(SuggestionAnchor(4, 13)), snapshot, 13) == ""
    assert old_suggestion(History(None), snapshot, 13) == ""
