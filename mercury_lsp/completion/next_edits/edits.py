"""Edits of a document: those that the user made, which are tracked as its text goes on changing, and proposed ones."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import accumulate, pairwise

from mercury_engine.text.lines import equal_ends

from mercury_lsp.documents.document import Edit, Snapshot

MAX_COMPARED_CHARS = 4000
"""Longest edit, both texts together, that is narrowed to what really changed: some clients send whole lines."""

MAX_EDITS_AT_ONCE = 8
"""Most different edits that a user makes at once, with several cursors."""

MIN_COMPARED_LINES = 4
"""An edit that replaces at least so many lines is compared line by line: it may be a formatter's."""

MAX_COMPARED_LINES = 400
"""Most lines compared, old and new together; a longer edit is a tool's anyway."""

SEARCH_REACH_CHARS = 100_000
"""Characters on either side of the last change that are searched."""

MAX_NEAR = 20
"""Most places examined on either side of a change, at about 0.1 ms each, in every open document."""


def narrowed(edit: Edit) -> Edit:
    """The edit without equal text at its ends, unless it is large.

    A key typed over a selection replaces all of it, even if the selection happens to end with the same letter.
    """
    old, new = edit.removed, edit.inserted
    if edit.size > MAX_COMPARED_CHARS or len(new) == 1 < len(old):
        return edit
    first, last = equal_ends(old, new)
    return Edit(edit.start + first, old[first : len(old) - last], new[first : len(new) - last])


def effective(edits: Iterable[Edit]) -> Iterator[Edit]:
    """The edits, narrowed, without those that change nothing: some clients send the same text again."""
    return (each for each in map(narrowed, edits) if each.removed != each.inserted)


def only_moves_white_space(edit: Edit) -> bool:
    """Whether both texts differ in blanks and line breaks only, or not at all."""
    return "".join(edit.removed.split()) == "".join(edit.inserted.split())


def moved_offset(offset: int, edit: Edit) -> int:
    """An offset after an edit; clamped to the edit's start if it lies within the removed text."""
    return offset + edit.new_end - edit.end if offset >= edit.end else min(offset, edit.start)


def moved(proposed: Edit, edit: Edit) -> Edit:
    """An edit as it is after another one, apart from it."""
    return replace(proposed, start=moved_offset(proposed.start, edit))


def merged(changes: Sequence[Edit], edit: Edit) -> Edit:
    """An edit and the earlier changes that it touches, from top to bottom, as one change."""
    if not changes:
        return edit
    first, last, old, at = changes[0], changes[-1], "", edit.start
    for change in changes:
        old += edit.removed[at - edit.start : max(0, change.start - edit.start)] + change.removed
        at = change.new_end
    start = min(edit.start, first.start)
    head, tail = first.inserted[: edit.start - start], last.inserted[edit.end - last.start :]
    return Edit(start, old + edit.removed[at - edit.start :], head + edit.inserted + tail)


def text_around(at: int, snapshot: Snapshot) -> tuple[int, str]:
    """The whole lines that are searched around an offset, and where they begin."""
    source = snapshot.source
    first, _ = source.line_bounds(at - SEARCH_REACH_CHARS)
    return first, source.slice(first, source.offset_at(source.line_of(at + SEARCH_REACH_CHARS) + 1, 0))


def occurrences(word: str, text: str) -> list[int]:
    """Where a whole word occurs in a text; `re` is several times faster if a pattern begins with letters."""
    letters = re.escape(word)
    return [each.start() for each in re.finditer(rf"{letters}(?<!\w{letters})(?!\w)", text)]


def near(starts: Sequence[int], at: int) -> slice:
    """The nearest places on either side of an offset, as a slice of their sorted starts."""
    middle = bisect_right(starts, at)
    return slice(max(0, middle - MAX_NEAR), middle + MAX_NEAR)


def below_first(edits: Sequence[Edit], at: int) -> list[Edit]:
    """The edits below an offset from the top down, then the others from the bottom up; `edits` must be sorted."""
    below = [each for each in edits if each.start > at]
    return below + [each for each in reversed(edits) if each.start <= at]


def joined(edits: Sequence[Edit], snapshot: Snapshot) -> Edit:
    """Edits, sorted, as one."""
    first, *others = edits
    start, old, new = first.start, first.removed, first.inserted
    for each in others:
        between = snapshot.slice(start + len(old), each.start)
        old, new = old + between + each.removed, new + between + each.inserted
    return Edit(start, old, new)


def of_user(edits: Sequence[Edit]) -> tuple[Sequence[Edit], bool]:
    """One notification's edits, each split where lines stay as they are, and whether a user may have made them.

    The same replacement everywhere is a renaming, however often it was made.
    """
    if len(edits) > 1 or _lines_replaced(edits[0]) >= MIN_COMPARED_LINES:
        edits = [part for edit in edits for part in _parts(edit)]
        # Neovim sends keys typed within 150 ms as several edits of one notification.
        places = 1 + sum(not _touches(after, before) for before, after in pairwise(edits))
        if places > MAX_EDITS_AT_ONCE and len({(each.removed, each.inserted) for each in edits}) > 1:
            return edits, False
        return edits, not all(map(only_moves_white_space, edits))
    return edits, True


def _touches(edit: Edit, before: Edit) -> bool:
    """Whether an edit touches the text that the one before it inserted, as the next key does."""
    return before.start - len(edit.removed) <= edit.start <= before.start + len(before.inserted)


def _lines_replaced(edit: Edit) -> int:
    return min(edit.removed.count("\n"), edit.inserted.count("\n"))


def _parts(edit: Edit) -> Iterator[Edit]:
    """The edit split around the lines that it leaves unchanged; applied in order, the parts do the same."""
    old, new = edit.removed.splitlines(keepends=True), edit.inserted.splitlines(keepends=True)
    if _lines_replaced(edit) < MIN_COMPARED_LINES or len(old) + len(new) > MAX_COMPARED_LINES:
        yield edit
        return
    ends = list(accumulate(map(len, new), initial=0))
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield Edit(edit.start + ends[c], "".join(old[a:b]), "".join(new[c:d]))
