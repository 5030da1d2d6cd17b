"""A change in a form that can be repeated elsewhere: whole words replaced by whole words, or a call by a call."""

import re
from dataclasses import dataclass

from mercury_lsp.completion.next_edits.calls import CallSite, call_around, with_same_change
from mercury_lsp.completion.next_edits.change import Change, differing
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language

MAX_REPLACEMENT_CHARS = 80
"""Longest old or new text; longer ones hardly occur anywhere else."""

MAX_REPEATED_LINE_CHARS = 2000
"""Longest line, in characters, in which a change is repeated."""

_WORD_REACH_CHARS = 200
"""Characters on either side of a change that are searched for the rest of a word."""

_BLANKS = " \t"
_WORD_END = re.compile(r"\w+\Z")
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[^\W\d]\w*")
_EXTENDS_WORD = re.compile(r"[.\[(?!]")
"""Starts text that belongs to the word before it."""
_LIST_SEPARATOR = re.compile(r"[,;]")
"""Separates list items, so it belongs to no single word."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """An old text, the new text, and the offset where the new text already stands."""

    old: str
    new: str
    start: int
    calls: tuple[CallSite, CallSite] | None = None
    """The whole call before and after, if a call got or lost an argument."""

    @property
    def end(self) -> int:
        """Where the new text ends."""
        return self.start + len(self.new)

    @property
    def is_of_name(self) -> bool:
        """Whether a single name replaced another one."""
        return bool(_NAME.fullmatch(self.old) and _NAME.fullmatch(self.new))

    def lines(self, snapshot: Snapshot) -> tuple[str, str]:
        """The line of the change, before and after."""
        line, start = snapshot.line_at(self.start)
        return line[: self.start - start] + self.old + line[self.end - start :], line

    def is_same(self, other: "Replacement") -> bool:
        """Whether both replace the same text by the same text, wherever they stand."""
        if self.calls and other.calls:
            return with_same_change(*self.calls, other.calls[0]) == other.new
        return (self.old, self.new) == (other.old, other.new)

    def undoes(self, other: "Replacement") -> bool:
        """Whether this replacement reverts the other one."""
        return (self.old, self.new) == (other.new, other.old)


def replacement_of(change: Change, snapshot: Snapshot) -> Replacement | None:
    """The change reduced to what differs, extended to whole words; None if it is not worth repeating.

    A pure insertion or deletion belongs to the word after it (`self.`) or before it (`.strip()`), or to a call.
    """
    change = differing(change)
    if _is_outdented(change, snapshot):
        return None
    change = _without_outer_blanks(change)
    start, old, new = change.start, change.old, change.new
    before = snapshot.slice(start - _WORD_REACH_CHARS, start)
    after = snapshot.slice(start + len(new), start + len(new) + _WORD_REACH_CHARS)
    left, right = _word_parts(before, old, new, after)
    whole = Replacement(left + old + right, left + new + right, start - len(left))
    line_start, line_end = snapshot.source.line_bounds(start)
    if line_end - line_start > MAX_REPEATED_LINE_CHARS:
        return None
    found = whole if left or right or (old and new) else _of_call(start, old, new, snapshot)
    return found if found is not None and _is_worth_repeating(found) else None


def _without_outer_blanks(change: Change) -> Change:
    """A replaced text without the blanks around it: the indentation that went with it is not repeated elsewhere."""
    old, new = change.old.strip(_BLANKS), change.new.strip(_BLANKS)
    if not (old and new):
        return change
    return Change(change.start + _indent(change.new), old, new)


def _is_outdented(change: Change, snapshot: Snapshot) -> bool:
    """Whether a line lost its indentation where that delimits blocks: its names seem to be in another scope then."""
    if not language(snapshot.language_id).by_indent or _indent(change.old) <= _indent(change.new):
        return False
    line, line_start = snapshot.line_at(change.start)
    return not line[: change.start - line_start].strip()


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(_BLANKS))


def _of_call(start: int, old: str, new: str, snapshot: Snapshot) -> Replacement | None:
    """The whole call around a change."""
    line, line_start = snapshot.line_at(start)
    at = start - line_start
    call = call_around(line, at, at + len(new))
    before = call_around(line[:at] + old + line[at + len(new) :], at, at + len(old))
    if call is None or before is None or (call.name, call.start) != (before.name, before.start):
        return None
    return Replacement(before.text, call.text, line_start + call.start, (before, call))


def _word_parts(before: str, old: str, new: str, after: str) -> tuple[str, str]:
    """The words, or parts of words, that belong to a change, before and after it."""
    word_before, word_after = _WORD_END.search(before), _WORD.match(after)
    left = word_before[0] if word_before and (_is_word(old[:1]) or _is_word(new[:1])) else ""
    right = word_after[0] if word_after and (_is_word(old[-1:]) or _is_word(new[-1:])) else ""
    if left or right or (old and new) or _LIST_SEPARATOR.search(old + new):
        return left, right
    if _EXTENDS_WORD.match(old + new):
        return (word_before[0] if word_before else ""), ""
    return "", (word_after[0] if word_after else "")


def _is_word(character: str) -> bool:
    return bool(_WORD.match(character))


def _is_worth_repeating(found: Replacement) -> bool:
    texts = (found.old, found.new)
    if found.old == found.new or any(
        len(text) > MAX_REPLACEMENT_CHARS or "\n" in text or "\r" in text for text in texts
    ):
        return False
    return bool(_NAME.search(found.old) and _NAME.search(found.new))
