"""What became of edits that follow an example of the user's: a place that the user declined is not offered again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mercury_lsp.completion.next_edits.change import moved_offset
from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.documents.document import Edit

TOUCHED_KEPT = 64
"""Number of edited places that are not offered again."""


@dataclass(frozen=True, slots=True)
class _Offer:
    uri: str
    start: int
    old: str
    new: str

    @property
    def end(self) -> int:
        return self.start + len(self.old)


class OffersByExample:
    """The offers in the documents of one connection; for the event loop's thread."""

    def __init__(self) -> None:
        self._offered: dict[str, _Offer] = {}
        self._touched: list[_Offer] = []
        """Offers that an edit touched: they were taken, perhaps to be taken back, or overwritten."""
        self._dismissed: set[tuple[str, str, str]] = set()
        """Uri, old and new text."""

    def offer(self, suggestion_id: str, uri: str, site: EditSite) -> None:
        """Record an offer."""
        self._offered = {suggestion_id: _Offer(uri, site.start, site.old, site.new)}

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """The user edited a document."""
        for edit in edits:
            for suggestion_id, offer in list(self._offered.items()):
                if offer.uri == uri and edit.start <= offer.end and edit.start + len(edit.removed) >= offer.start:
                    self._touched = [*self._touched, self._offered.pop(suggestion_id)][-TOUCHED_KEPT:]
            self._touched = [_moved(each, uri, edit) for each in self._touched]
            self._offered = {name: _moved(each, uri, edit) for name, each in self._offered.items()}

    def dismiss(self, suggestion_id: str) -> None:
        """Do not offer this change again in its document."""
        if (offer := self._offered.pop(suggestion_id, None)) is not None:
            self._dismissed.add((offer.uri, offer.old, offer.new))

    def is_declined(self, uri: str, site: EditSite) -> bool:
        """Whether the user did not want this change, or took it back at this place."""
        if (uri, site.old, site.new) in self._dismissed:
            return True
        return _Offer(uri, site.start, site.old, site.new) in self._touched


def _moved(offer: _Offer, uri: str, edit: Edit) -> _Offer:
    """An offer after an edit; an edit at its start leaves it where it is."""
    if offer.uri != uri or edit.start >= offer.start:
        return offer
    return replace(offer, start=moved_offset(offer.start, edit))
