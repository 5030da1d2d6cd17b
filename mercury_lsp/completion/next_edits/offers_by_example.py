"""What became of edits that follow an example of the user's: a place that the user declined is not offered again."""

from collections.abc import Sequence

from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.offer import Offer
from mercury_lsp.documents.document import Edit

TOUCHED_KEPT = 64
"""Number of edited places that are not offered again."""


class OffersByExample:
    """The offers in the documents of one connection; for the event loop's thread."""

    def __init__(self) -> None:
        self._offered: dict[str, Offer] = {}
        self._touched: list[Offer] = []
        """Offers that an edit touched: they were taken, perhaps to be taken back, or overwritten."""
        self._dismissed: set[tuple[str, str, str]] = set()
        """Uri, old and new text."""

    def offer(self, suggestion_id: str, uri: str, site: EditSite) -> None:
        """Record an offer."""
        self._offered = {suggestion_id: Offer(uri, site)}

    def edited(self, uri: str, edits: Sequence[Edit]) -> None:
        """The user edited a document."""
        for edit in edits:
            for suggestion_id, offer in list(self._offered.items()):
                if offer.is_touched_by(uri, edit):
                    self._touched = [*self._touched, self._offered.pop(suggestion_id)][-TOUCHED_KEPT:]
            self._touched = [each.moved(uri, edit) for each in self._touched]
            self._offered = {name: each.moved(uri, edit) for name, each in self._offered.items()}

    def dismiss(self, suggestion_id: str) -> None:
        """Do not offer this change again in its document."""
        if (offer := self._offered.pop(suggestion_id, None)) is not None:
            self._dismissed.add(offer.key)

    def is_declined(self, uri: str, site: EditSite) -> bool:
        """Whether the user did not want this change, or took it back at this place."""
        offer = Offer(uri, site)
        return offer.key in self._dismissed or offer in self._touched
