"""What an edit does to what the user did, whether it only moves white space; whether lines parse or are quoted."""

import re
from collections.abc import Sequence

from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language

_WORD = re.compile(r"\w+")


def only_moves_white_space(old: str, new: str) -> bool:
    """Whether two texts differ in blanks and line breaks only, if at all."""
    return "".join(old.split()) == "".join(new.split())


def reverts(snapshot: Snapshot, start: int, old: str, new: str, hunks: Sequence[Hunk]) -> bool:
    """Whether an edit takes one of the hunks back."""
    return any(_reverts(snapshot, start, old, new, hunk) for hunk in hunks)


def is_complete(hunk: Hunk, snapshot: Snapshot) -> bool:
    """Whether the lines of a change parse; otherwise the user is in the middle of it."""
    return parses(snapshot, hunk.line, hunk.end_line)


def parses(snapshot: Snapshot, first: int, end: int) -> bool:
    """Whether the lines [first, end) of a version parse."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return False
    start, stop = (snapshot.source.byte_of(snapshot.offset_at(line, 0)) for line in (first, end))
    node = snapshot.tree.root_node.named_descendant_for_byte_range(start, max(start, stop - 1))
    return node is None or not node.has_error


def quoted_as(snapshot: Snapshot, offset: int) -> str:
    """Whether an offset is within a `comment` or a `string`; empty for code, and without a tree."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return ""
    rules = language(snapshot.language_id)
    for node in reversed(path_to(snapshot.tree, snapshot.source.byte_of(offset))):
        if node.type in rules.embedded or node.type in rules.bodies:
            return ""
        if node.type in rules.strings or node.type in rules.comments:
            return "string" if node.type in rules.strings else "comment"
    return ""


def _reverts(snapshot: Snapshot, start: int, old: str, new: str, hunk: Hunk) -> bool:
    """Whether an edit takes a hunk back: where it was made, or the same words the other way round elsewhere."""
    if hunk.uri == snapshot.uri and _is_in(hunk, snapshot, start, start + len(old)):
        was, now, here = _stripped(hunk.before), _stripped(new), _stripped(old)
        if now <= was and (not here or not here <= was):
            return True
    removed, added = _exchanged(old, new)
    taken, brought = _exchanged(hunk.before, hunk.after)
    return bool(removed and added) and removed <= brought and added <= taken


def _is_in(hunk: Hunk, snapshot: Snapshot, start: int, end: int) -> bool:
    """Whether an edit touches the lines of a hunk."""
    first, last = snapshot.source.line_of(start), snapshot.source.line_of(max(start, end - 1))
    return first < max(hunk.end_line, hunk.line + 1) and last >= hunk.line


def _stripped(text: str) -> frozenset[str]:
    return frozenset(line.strip() for line in text.splitlines()) - {""}


def _exchanged(old: str, new: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words that only the old text has, and those that only the new one has."""
    before, after = frozenset(_WORD.findall(old)), frozenset(_WORD.findall(new))
    return before - after, after - before
