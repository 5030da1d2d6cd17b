"""An offered edit, which later edits move or touch."""

from dataclasses import dataclass, replace

from mercury_lsp.completion.next_edits.change import moved_offset
from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.documents.document import Edit


@dataclass(frozen=True, slots=True)
class Offer:
    """An edit of a document."""

    uri: str
    site: EditSite

    @property
    def key(self) -> tuple[str, str, str]:
        """Uri, old and new text: the same edit at another place has the same."""
        return self.uri, self.site.old, self.site.new

    def is_touched_by(self, uri: str, edit: Edit) -> bool:
        """Whether an edit of a document reaches it, if only at its border."""
        site = self.site
        return self.uri == uri and edit.start <= site.end and edit.start + len(edit.removed) >= site.start

    def moved(self, uri: str, edit: Edit) -> "Offer":
        """It after an edit of a document; an edit at its start leaves it where it is."""
        if self.uri != uri or edit.start >= self.site.start:
            return self
        return replace(self, site=replace(self.site, start=moved_offset(self.site.start, edit)))
