"""Reasons not to show an edit: it undoes or repeats the user's change, only moves blanks, breaks the syntax."""

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from mercury_engine.text.lines import equal_ends, lines_of

from mercury_lsp.completion.next_edits.edits import narrowed, occurrences, only_moves_white_space
from mercury_lsp.completion.next_edits.examples import EXAMPLES, TOKEN
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.redaction import edit_shows_secret
from mercury_lsp.documents.syntax import breaks_document, is_within_error, mends

MAX_EDIT_CHARS = 4_000
"""Longest edit, old and new text together."""

MIN_BROUGHT_BACK_CHARS = 5
"""Shortest stripped line that counts as brought back: `}` is in every edit."""

MIN_LIKENESS = 0.7
"""Least share of a model's tokens that occur in the example; the others must be words of its own line."""

SURE = 0.7
"""Least probability of a model's edit that inserts words of the latest changes in a new way."""

MAX_TOKEN_PAIRS = 60_000
"""Most pairs of tokens, before times after, that are compared in 15 ms; larger changes only by their ends."""

MAX_LINES = 8
"""Most lines of a change with which an edit is compared one by one."""

MIN_REMOVED_LINES = 3
"""Lines that an edit may always remove beyond those it adds; if more were rewritten, half of them."""

BREAKS = "it breaks the syntax"

Exchange = tuple[tuple[str, ...], tuple[str, ...]]
"""A run of tokens, and what it became."""

_WORD = re.compile(r"\w+")


class _Change(NamedTuple):
    """Lines that became others, and the runs of tokens that were replaced in them."""

    old: str
    new: str
    exchanges: tuple[Exchange, ...]

    @property
    def is_line(self) -> bool:
        """Whether both are a single line with text."""
        return all(text.strip() and text.count("\n") <= 1 for text in (self.old, self.new))


def objection(snapshot: Snapshot, edit: Edit, hunks: Sequence[Hunk], at_risk: int | None = None) -> str | None:
    """Why an edit of this version is not shown, given the user's changes; None if it may be.

    A model that was trained on edits, and rewrote `at_risk` lines, need not follow the user's changes. It may undo a
    change that broke the syntax, such as a slip of the fingers.
    """
    start, end, old, new = edit.start, edit.end, edit.removed, edit.inserted
    is_writers = at_risk is not None
    if edit.size > MAX_EDIT_CHARS:
        return "it is too long"
    if only_moves_white_space(edit):
        return "it only moves blanks"
    removed = old.count("\n") - new.count("\n")
    if at_risk is not None and removed > max(MIN_REMOVED_LINES, at_risk // 2):
        return f"it removes {removed} of {at_risk} lines"
    undoes = _undoes(snapshot, edit, hunks)
    if undoes is not None and not (is_writers and mends(snapshot, start, end, new)):
        return undoes
    if _stands_beside(snapshot, edit) or (not is_writers and _doubles(old, new, hunks)):
        return "it repeats what is there"
    if edit_shows_secret(snapshot, start, end, new):
        return "its lines look like secrets"
    is_broken = is_writers and is_within_error(snapshot, start, end)
    return BREAKS if not is_broken and breaks_document(snapshot, start, end, new) else None


def _undoes(snapshot: Snapshot, edit: Edit, hunks: Sequence[Hunk]) -> str | None:
    """How an edit undoes the user's changes; None if it does not."""
    if any(_reverts(snapshot, edit, hunk) for hunk in hunks):
        return "it undoes a change of yours"
    return "it brings back lines that you removed" if _brings_back(edit.removed, edit.inserted, hunks) else None


def strays(old: str, new: str, hunks: Sequence[Hunk], probability: float = 0.0, text: str = "") -> str | None:
    """Why a model's edit doesn't follow from the user's changes; None if it does.

    It follows if one of the latest changes exchanged the same words and marks, and it removes no more lines than they
    did. If it is `SURE`, it may insert words that they added: `_count = count` after a field and a parameter. It may
    correct such a word that occurs nowhere else in the document's `text` to one that does. It may change a line as a
    similar line was changed, with its own words (`print('b:', b)` to `print(f'b: {b}')`), but not with the other's.
    """
    latest = hunks[-EXAMPLES:]
    removed = (hunk.before.count("\n") - hunk.after.count("\n") for hunk in latest)
    if old.count("\n") - new.count("\n") > max([0, *removed]):
        return "it removes lines, and you did not"
    changes = [_changes(hunk.before, hunk.after) for hunk in latest]
    lines = [line for each in changes for line in [change for change in each if change.is_line][:MAX_LINES]]
    if any(_is_same_change(old, new, each) for each in lines):
        return None
    theirs = {exchange for each in changes for change in each for exchange in change.exchanges}
    words = frozenset(word.lower() for word in TOKEN.findall(old))
    brought = {word for _, come in theirs for word in come if _WORD.fullmatch(word)} if probability >= SURE else set()
    for ours in (exchange for change in _changes(old, new) for exchange in change.exchanges):
        inserted = () if ours[0] else tuple(filter(_WORD.fullmatch, ours[1]))
        is_brought = (bool(inserted) and brought.issuperset(inserted)) or _is_typo(ours, brought, text)
        alike = [other for other in theirs if _is_like(ours, other, words)]
        if not is_brought and not alike:
            return "it does something else than your changes"
        if any(_copies(ours, other, words, each) for other in alike for each in lines):
            return "it copies words of the line that you changed"
    return None


def _is_same_change(before: str, after: str, line: _Change) -> bool:
    """Whether a line changed as the user's did, with its own words in place of theirs, all of which stay."""
    was, now, old, new = (TOKEN.findall(text) for text in (line.old, line.new, before, after))
    own = dict(zip(was, old, strict=False))
    if len(was) != len(old) or [own[word] for word in was] != old:
        return False
    is_of_words = all(
        word == other or (_WORD.fullmatch(word) and _WORD.fullmatch(other)) for word, other in own.items()
    )
    stay = {other for word, other in own.items() if word != other} <= {*new}
    return is_of_words and stay and [own.get(word, word) for word in now] == new


def _copies(ours: Exchange, other: Exchange, words: frozenset[str], line: _Change) -> bool:
    """Whether an exchange similar to one in the user's line adds words of that line that its own line lacks."""
    theirs = {word.lower() for word in _WORD.findall(line.old)} - words
    return other in line.exchanges and any(word.lower() in theirs for word in ours[1] if word not in ours[0])


def _is_typo(ours: Exchange, brought: Collection[str], text: str) -> bool:
    """Whether an added word that occurs only once becomes a similar word that occurs already."""
    if len(ours[0]) != 1 or len(ours[1]) != 1 or ours[0][0] not in brought:
        return False
    (wrong,), (right,) = ours
    likeness = SequenceMatcher(None, wrong, right, autojunk=False).ratio()
    return len(occurrences(wrong, text)) == 1 and bool(occurrences(right, text)) and likeness >= MIN_LIKENESS


def followed(edit: Edit, hunks: Sequence[Hunk], probability: float, text: str) -> tuple[Edit, str | None]:
    """The first lines of a model's edit that follow, if it replaces them one by one; or all of it, and why not."""
    old, new, why, before, after = lines_of(edit.removed), lines_of(edit.inserted), None, "", ""
    pairs = zip(old, new, strict=True) if len(old) == len(new) else [(edit.removed, edit.inserted)]
    for was, now in pairs:
        if (why := strays(was, now, hunks, probability, text)) is not None:
            break
        before, after = before + was, after + now
    return (edit, why) if before == after else (Edit(edit.start, before, after), None)


def _is_like(ours: Exchange, theirs: Exchange, words: frozenset[str]) -> bool:
    """Whether both exchange the same, or remove the same and add much of the same and words of their own lines."""
    if ours[0] != theirs[0] or ours[1] == theirs[1]:
        return ours == theirs
    is_own = all(token.lower() in words for token in ours[1] if token not in theirs[1])
    return is_own and SequenceMatcher(None, ours[1], theirs[1], autojunk=False).ratio() >= MIN_LIKENESS


@lru_cache  # every line of a model's edit needs the latest ones
def _changes(old: str, new: str) -> tuple[_Change, ...]:
    """The lines that became others, one by one where their number stayed."""
    before, after = lines_of(old), lines_of(new)
    found = list[_Change]()
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        by_line = zip(before[a:b], after[c:d], strict=True) if b - a == d - c else ()
        for was, now in [*by_line] or [("".join(before[a:b]), "".join(after[c:d]))]:
            found.append(_Change(was, now, tuple(_runs(TOKEN.findall(was), TOKEN.findall(now)))))
    return tuple(found)


def _runs(before: Sequence[str], after: Sequence[str]) -> Iterator[Exchange]:
    """The runs of tokens that were replaced; of too many tokens, everything between the equal ends."""
    if len(before) * len(after) > MAX_TOKEN_PAIRS:
        first, last = equal_ends(before, after)
        yield tuple(before[first : len(before) - last]), tuple(after[first : len(after) - last])
        return
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            yield tuple(before[a:b]), tuple(after[c:d])


def _reverts(snapshot: Snapshot, edit: Edit, hunk: Hunk) -> bool:
    """Whether an edit undoes a hunk in its place, or exchanges the same words in the other direction elsewhere."""
    if hunk.uri == snapshot.uri and _is_in(hunk, snapshot, edit):
        was, now, here = _lines(hunk.before), _lines(edit.inserted), _lines(edit.removed)
        if now <= was and (not here or not here <= was):
            return True
    removed, added = _exchanged(edit.removed, edit.inserted)
    taken, brought = _exchanged(hunk.before, hunk.after)
    return bool(removed and added) and removed <= brought and added <= taken


def _is_in(hunk: Hunk, snapshot: Snapshot, edit: Edit) -> bool:
    """Whether an edit touches the lines of a hunk."""
    first, last = snapshot.source.line_of(edit.start), snapshot.source.line_of(max(edit.start, edit.end - 1))
    return first < max(hunk.end_line, hunk.line + 1) and last >= hunk.line


def _exchanged(old: str, new: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words that only the old text has, and those that only the new one has."""
    before, after = frozenset(_WORD.findall(old)), frozenset(_WORD.findall(new))
    return before - after, after - before


def _brings_back(old: str, new: str, hunks: Sequence[Hunk]) -> bool:
    """Whether an edit inserts a line that the user has removed."""
    added = _lines(new) - _lines(old)
    removed = {line for hunk in hunks for line in _lines(hunk.before) - _lines(hunk.after)}
    return any(len(line) >= MIN_BROUGHT_BACK_CHARS for line in added & removed)


def _doubles(old: str, new: str, hunks: Sequence[Hunk]) -> bool:
    """Whether an edit inserts twice what an example inserted once."""
    for hunk in hunks:
        added = narrowed(Edit(0, hunk.before, hunk.after)).inserted
        twice = "".join((added + added).split())
        if _WORD.search(added) and twice in "".join(new.split()) and twice not in "".join(old.split()):
            return True
    return False


def _stands_beside(snapshot: Snapshot, edit: Edit) -> bool:
    """Whether an edit only inserts lines that are already next to it."""
    new = edit.inserted
    if edit.removed.strip() or not new.strip():
        return False
    count, reach = new.count("\n"), 2 * len(new) + 80
    above = "".join(lines_of(snapshot.slice(edit.start - reach, edit.start))[-count:])
    below = "".join(lines_of(snapshot.slice(edit.end, edit.end + reach))[:count])
    return new.strip() in (above.strip(), below.strip())


def _lines(text: str) -> frozenset[str]:
    return frozenset(line.strip() for line in text.splitlines()) - {""}
