"""Edits of a document: those that the user made, which are tracked as its text goes on changing, and proposed ones."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from mercury_engine.text.lines import equal_ends

from mercury_lsp.documents.document import Edit, Snapshot

MAX_COMPARED_CHARS = 4000
"""Longest edit, both texts together, that is narrowed to what really changed: some clients send whole lines."""

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
