"""A renaming that the user has begun, at its other places."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from mercury_lsp.completion.next_edits.proposals import Proposal, by_line
from mercury_lsp.completion.next_edits.repeatable_edits import RepeatableEdits
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.completion.suggestions import RenamingProgress
from mercury_lsp.documents.document import Snapshot


@dataclass(frozen=True, slots=True)
class RepeatedChange:
    """A renaming in a document."""

    repeatable: RepeatableEdits
    replacement: Replacement
    snapshot: Snapshot

    def proposals(self, invoked: bool) -> Iterator[Proposal]:
        """The renaming at its other places, those of one line at once.

        Unasked only if it was begun where the name is bound, or made twice: from a use alone it may be another name.
        """
        if not (invoked or self.repeatable.must_go_on(self.replacement, self.snapshot)):
            return
        for line in by_line(self.repeatable.sites(self.replacement, self.snapshot, invoked), self.snapshot):
            yield Proposal(self.snapshot, tuple(line), partial(self._progress, len(line)))

    def covers(self, other: Proposal) -> bool:
        """Whether the renaming, which knows scopes, decides about an edit of its document that renames the same."""
        site, names = other.site, (self.replacement.old, self.replacement.new)
        is_same = other.snapshot.uri == self.snapshot.uri and (site.old, site.new) == names
        return is_same and self.repeatable.must_go_on(self.replacement, self.snapshot)

    def _progress(self, offered: int) -> RenamingProgress | None:
        """How far the renaming is, at an offer of so many places."""
        renaming = self.repeatable.renaming(self.replacement, self.snapshot)
        if renaming is None or not renaming.left:
            return None
        first, last = renaming.made + 1, renaming.made + offered
        return RenamingProgress(renaming.old, renaming.new, first, last, renaming.total, renaming.remaining)
