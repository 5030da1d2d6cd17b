"""The user's changes to a document: the last one, the renaming it may have begun with, and earlier ones."""

import re
from collections.abc import Iterator

from mercury_lsp.completion.next_edits.change import MAX_CHANGE_CHARS, Change, differing
from mercury_lsp.completion.next_edits.replacement import Replacement, replacement_of, word_around
from mercury_lsp.documents.document import Edit, Snapshot

FINISHED_CHANGES_KEPT = 16
"""Number of earlier changes of words kept; moving one for an edit takes at most a microsecond."""

_GOES_ON = re.compile(r"\.|\?\.|::|->|[(\[!]")
"""Extends a typed name to a longer expression (`self`, then `.path`)."""


class ChangeLog:
    """The changes in one document; an edit is recorded in time that does not depend on the text's length."""

    def __init__(self) -> None:
        self._last: Change | None = None
        self._word: Change | None = None
        """The last change as it was before the user typed punctuation or blanks after it."""
        self._finished: list[Change] = []
        self.is_growing = False
        """The last edit inserted text."""

    def record(self, edit: Edit) -> None:
        """Record an edit; one that changes nothing, as when the client sends the same text again, is ignored."""
        made = differing(Change(edit.start, edit.removed, edit.inserted))
        if made.old == made.new:
            return
        edit = Edit(made.start, made.old, made.new)
        self.is_growing = bool(made.new)
        before, grown = self._last, self._last.then(edit) if self._last is not None else None
        resumed = self._resumed(edit) if grown is None else None
        self._last = _unless_large(grown or resumed or made)
        self._finished = [moved for each in self._finished if (moved := each.moved(edit)) is not None]
        if before is None or grown is None:
            self._finish(self._word or before, edit)
        elif self._word is not None:
            self._word = _edited(self._word, edit)
        elif before.is_left_by(edit):
            self._word = before

    def replacement(self, snapshot: Snapshot) -> Replacement | None:
        """The last change as a replacement; a renamed word counts without the text typed after it."""
        word = replacement_of(self._word, snapshot) if self._word is not None else None
        if word is not None and not _GOES_ON.match(snapshot.slice(word.end, word.end + 2)):
            return word
        return replacement_of(self._last, snapshot) if self._last is not None else None

    def taken_back(self, snapshot: Snapshot) -> str | None:
        """The word in which the last change is one no more: the user took it back."""
        change = self._last
        if change is None or change.old != change.new or not change.old:
            return None
        return word_around(change.start, change.end, snapshot)

    def finished(self, snapshot: Snapshot) -> Iterator[Replacement]:
        """The earlier changes, oldest first, that still stand and are worth repeating."""
        found = (replacement_of(each, snapshot) for each in self._finished)
        return (each for each in found if each is not None)

    def _resumed(self, edit: Edit) -> Change | None:
        """An earlier change of a word that an edit of the same word goes on with; it is the last one again."""
        for number, each in enumerate(self._finished):
            if each.is_within_word_of(edit):
                del self._finished[number]
                return each.then(edit)
        return None

    def _finish(self, change: Change | None, edit: Edit) -> None:
        """Keep a change of a word: an edit elsewhere has begun another one."""
        self._word = None
        if change is None or change.old == change.new or not differing(change).is_within_word:
            return
        if (moved := change.moved(edit)) is not None:
            self._finished = [*self._finished, moved][-FINISHED_CHANGES_KEPT:]


def _edited(word: Change, edit: Edit) -> Change | None:
    """A word's change after an edit of the word, or of the text after it."""
    if word.is_left_by(edit):
        return word
    return _unless_large(word.then(edit) or word.moved(edit))


def _unless_large(change: Change | None) -> Change | None:
    return change if change is not None and len(change.old) + len(change.new) <= MAX_CHANGE_CHARS else None
