"""A change that the user has made, at its other places: in its document, in other open ones, and in closed files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mercury_lsp.completion.next_edits.judging import MIN_PROBABILITY, MIN_RENAMED_PROBABILITY, change_block
from mercury_lsp.completion.next_edits.proposals import Proposal, by_line
from mercury_lsp.completion.next_edits.renaming import Renaming
from mercury_lsp.completion.next_edits.repeatable_edits import RepeatableEdits
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.completion.suggestions import RenamingProgress
from mercury_lsp.documents.document import Snapshot

Others = Sequence[tuple[Snapshot, str]]
"""Other documents, with their paths, that may be edited together with the one at hand."""


@dataclass(frozen=True, slots=True)
class Closed:
    """Files that aren't open, in which a renaming goes on, with their paths."""

    files: Others = ()
    are_offered: bool = True
    """Whether the client can show an edit in them; otherwise their places are counted only."""


NOTHING_CLOSED = Closed()


@dataclass(frozen=True, slots=True)
class RepeatedChange:
    """A replacement in a document at `path`, and other documents with their paths."""

    repeatable: RepeatableEdits
    replacement: Replacement
    snapshot: Snapshot
    path: str
    others: Others
    closed: Closed = NOTHING_CLOSED

    def here(self, invoked: bool) -> Iterator[Proposal]:
        """The change at its other sites in the document, those of one line at once if a name was renamed.

        A renaming under way is not judged: the name is undefined where it stops.
        """
        repeatable, replacement, snapshot = self.repeatable, self.replacement, self.snapshot
        if not (sites := repeatable.sites(replacement, snapshot, invoked)):
            return
        is_local = repeatable.is_bound_locally(replacement, snapshot)
        least = 0.0 if is_local or repeatable.is_walked(replacement, snapshot) else self._least
        block = change_block(replacement, snapshot)
        is_guess = least > 0 and self._is_guess
        lines = by_line(sites, snapshot) if replacement.is_of_name else ([site] for site in sites)
        for line in lines:
            yield Proposal(snapshot, self.path, tuple(line), block, least, self.progress, is_guess)

    def elsewhere(self) -> Iterator[Proposal]:
        """The renaming in other documents."""
        renaming = self._renaming if self.others or self.closed.files else None
        if renaming is None:
            return
        block, is_guess = change_block(self.replacement, self.snapshot), self._is_guess
        for each in renaming.elsewhere:
            if each.snapshot.is_on_disk and not self.closed.are_offered:
                continue
            for line in by_line(each.sites, each.snapshot):
                yield Proposal(each.snapshot, each.path, tuple(line), block, self._least, self.progress, is_guess)

    def progress(self) -> RenamingProgress | None:
        """How far the renaming is."""
        renaming = self._renaming
        if renaming is None or not renaming.remaining:
            return None
        counts = renaming.made + 1, renaming.total, renaming.remaining
        return RenamingProgress(renaming.old, renaming.new, *counts, renaming.closed_places, renaming.closed_files)

    @property
    def _is_declaration(self) -> bool:
        return self.repeatable.is_declaration(self.replacement, self.snapshot)

    @property
    def _is_guess(self) -> bool:
        return not self.repeatable.is_binding(self.replacement, self.snapshot)

    @property
    def _least(self) -> float:
        return MIN_RENAMED_PROBABILITY if self._is_declaration else MIN_PROBABILITY

    @property
    def _renaming(self) -> Renaming | None:
        others = [*self.others, *self.closed.files]
        return self.repeatable.renaming(self.replacement, self.snapshot, self.path, others)
