"""What the user's last edits mean for suggestions: typing through one, taking it back, deleting text."""

from dataclasses import dataclass, replace

from mercury_lsp.completion.suggestions import Suggestion
from mercury_lsp.documents.document import Edit, Snapshot


@dataclass(slots=True)
class SuggestionAnchor:
    """Where a completion was asked for, and what has since been typed there."""

    start: int
    end: int
    """The text typed since then reaches from start up to here."""
    suggestion: Suggestion | None = None
    """Shown with the cursor at start; None while the model works on it."""
    ahead: Suggestion | None = None
    """What to show once the suggestion stands in the text, prepared before anybody asked."""
    accepted: bool = False
    """The suggestion is not offered again."""
    earlier: Suggestion | None = None
    """What was shown here already when the completion was asked for."""

    def known(self, suggestion: Suggestion) -> Suggestion:
        """The suggestion under the id that its text has here already, for clients that list several answers in one."""
        if self.earlier is None or self.earlier.text != suggestion.text:
            return suggestion
        return replace(suggestion, id=self.earlier.id)

    def follow(self, edit: Edit) -> bool:
        """Move the end with an edit of the typed text; False when the edit touches anything else."""
        if not self.start <= edit.start <= edit.start + len(edit.removed) <= self.end:
            return False
        self.end += len(edit.inserted) - len(edit.removed)
        return True


class TypingThrough:
    """Of one open document; told every edit in order."""

    def __init__(self) -> None:
        self._place: SuggestionAnchor | None = None
        self._shown: SuggestionAnchor | None = None
        self._deleted: Edit | None = None

    @property
    def shown(self) -> SuggestionAnchor | None:
        """The last place where a suggestion was shown, also after the user typed something else than it says."""
        place = self._place if self._place is not None and self._place.suggestion is not None else self._shown
        return None if place is None or place.accepted else place

    def record(self, edit: Edit) -> None:
        """Take note of one edit."""
        if self._shown is not None and not self._shown.follow(edit):
            self._shown = None
        if self._place is not None and not self._place.follow(edit):
            self._place = None
        self._deleted = _joined(self._deleted, edit) if edit.removed and not edit.inserted else None

    def reset(self) -> None:
        """Forget everything, for the document was replaced as a whole."""
        self._place = self._shown = self._deleted = None

    def ask(self, snapshot: Snapshot, offset: int) -> SuggestionAnchor:
        """The place of a new request; edits are followed from now on, while the model works too."""
        self._shown = self.shown
        earlier = self._remaining(self._shown, snapshot, offset) if self._shown is not None else None
        self._place = SuggestionAnchor(offset, offset, earlier=earlier)
        return self._place

    def drop(self, suggestion_id: str) -> None:
        """The suggestion was accepted: it is not offered again."""
        if self._place and self._place.suggestion and self._place.suggestion.id == suggestion_id:
            self._place.accepted = True

    def rest(self, snapshot: Snapshot, offset: int) -> Suggestion | None:
        """What remains of the last suggestion when exactly a prefix of it was typed; behind all of it what is ahead."""
        place = self._place
        if place is None or place.suggestion is None or place.end != offset:
            return None
        if snapshot.slice(place.start, offset) == place.suggestion.text:
            return _at(place.ahead, snapshot, offset) if place.ahead else None
        return self._remaining(place, snapshot, offset)

    def was_deleted(self, offset: int, text: str) -> bool:
        """Whether text is, or starts with, what the last deletion removed at offset."""
        if self._deleted is None or self._deleted.start != offset or not self._deleted.removed.strip():
            return False
        removed, offered = self._deleted.removed.rstrip(), text.rstrip()
        return offered.startswith(removed) or removed.startswith(offered)

    def _remaining(self, place: SuggestionAnchor, snapshot: Snapshot, offset: int) -> Suggestion | None:
        """The rest of a place's suggestion behind what was typed of it; None if that is none, or was taken back."""
        if place.suggestion is None or place.accepted or place.end != offset:
            return None
        typed, text = snapshot.slice(place.start, offset), place.suggestion.text
        if typed == text or not text.startswith(typed) or self._took_back(offset, text[len(typed) :]):
            return None
        return _at(place.suggestion.behind(len(typed)), snapshot, offset)

    def _took_back(self, offset: int, rest: str) -> bool:
        """Whether the last deletion removed the whole rest, which had been typed or accepted before."""
        deleted = self._deleted
        return deleted is not None and deleted.start == offset and deleted.removed.startswith(rest)


def _at(suggestion: Suggestion, snapshot: Snapshot, offset: int) -> Suggestion:
    """The suggestion for a cursor at offset, without asking a model again."""
    here = snapshot.position_at(offset)
    return replace(suggestion, start=here, end=here, steps=0, elapsed_ms=0.0)


def _joined(earlier: Edit | None, later: Edit) -> Edit:
    """One deletion out of two at the same place, by backspace or by delete."""
    if earlier is None:
        return later
    if later.start + len(later.removed) == earlier.start:
        return replace(later, removed=later.removed + earlier.removed)
    if later.start == earlier.start:
        return replace(later, removed=earlier.removed + later.removed)
    return later
