"""Tells the edits of a user from those of formatters, branch switches and other tools."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, pairwise

from mercury_lsp.completion.next_edits.edits import only_moves_white_space
from mercury_lsp.documents.document import Edit

MAX_EDITS_AT_ONCE = 8
"""Most different edits that a user makes at once, with several cursors."""

MIN_COMPARED_LINES = 4
"""An edit that replaces at least so many lines is compared line by line: it may be a formatter's."""

MAX_COMPARED_LINES = 400
"""Most lines compared, old and new together; a longer edit is a tool's anyway."""


def of_user(edits: Sequence[Edit]) -> tuple[Sequence[Edit], bool]:
    """One notification's edits, each split where lines stay as they are, and whether a user may have made them.

    The same replacement everywhere is a renaming, however often it was made.
    """
    if len(edits) > 1 or _lines_replaced(edits[0]) >= MIN_COMPARED_LINES:
        edits = [part for edit in edits for part in _parts(edit)]
        if _places(edits) > MAX_EDITS_AT_ONCE and len({(each.removed, each.inserted) for each in edits}) > 1:
            return edits, False
        return edits, not all(map(only_moves_white_space, edits))
    return edits, True


def _places(edits: Sequence[Edit]) -> int:
    """The number of places edited; Neovim sends keys typed within 150 ms as several edits of one notification."""
    return 1 + sum(not _touches(after, before) for before, after in pairwise(edits))


def _touches(edit: Edit, before: Edit) -> bool:
    """Whether an edit touches the text that the one before it inserted, as the next key does."""
    return before.start - len(edit.removed) <= edit.start <= before.start + len(before.inserted)


def _lines_replaced(edit: Edit) -> int:
    return min(edit.removed.count("\n"), edit.inserted.count("\n"))


def _parts(edit: Edit) -> Iterator[Edit]:
    """The edit split around the lines that it leaves unchanged; applied in order, the parts do the same."""
    if _lines_replaced(edit) < MIN_COMPARED_LINES:
        yield edit
        return
    old, new = edit.removed.splitlines(keepends=True), edit.inserted.splitlines(keepends=True)
    if len(old) + len(new) > MAX_COMPARED_LINES:
        yield edit
        return
    ends = list(accumulate(map(len, new), initial=0))
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield Edit(edit.start + ends[c], "".join(old[a:b]), "".join(new[c:d]))
