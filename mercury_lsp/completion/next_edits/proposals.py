"""Edits that rules propose, and the first one that may be shown. The rules are exact, so no model judges them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from mercury_lsp.completion.next_edits.edit_sites import EditSite, joined
from mercury_lsp.completion.silence import Silence
from mercury_lsp.completion.suggestions import RenamingProgress, Suggestion
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.redaction import edit_shows_secret
from mercury_lsp.documents.syntax import breaks


@dataclass(frozen=True, slots=True)
class Proposal:
    """Sites in one line of a document's version, from left to right, to be edited at once."""

    snapshot: Snapshot
    sites: tuple[EditSite, ...]
    progress: Callable[[], RenamingProgress | None] = lambda: None
    """Progress of the renaming that it continues."""

    @property
    def site(self) -> EditSite:
        """Its sites as one."""
        return joined(self.sites, self.snapshot)


def by_line(sites: Sequence[EditSite], snapshot: Snapshot) -> Iterator[list[EditSite]]:
    """The sites grouped by line, each group from left to right; lines in the order of their first sites."""
    lines: dict[int, list[EditSite]] = {}
    for site in sites:
        lines.setdefault(snapshot.source.line_of(site.start), []).append(site)
    return (sorted(each, key=lambda site: site.start) for each in lines.values())


def first_shown(proposals: Iterable[Proposal], silence: Silence) -> tuple[Proposal, Suggestion] | None:
    """The first proposal that breaks no syntax and shows no secret; adds to `silence` why others aren't shown."""
    started = perf_counter()
    for each in proposals:
        site, line = each.site, each.snapshot.source.line_of(each.sites[0].start) + 1
        if breaks(each.snapshot, site.start, site.end, site.new):
            silence.add(f"line {line}: a rule's edit would break the syntax", each.snapshot.uri)
        elif edit_shows_secret(each.snapshot, site.start, site.end, site.new):
            silence.add(f"line {line}: lines like secrets are not edited", each.snapshot.uri)
        else:
            seconds = perf_counter() - started
            found = Suggestion.replacing(each.snapshot, site.start, site.end, site.new, 1.0, seconds)
            return each, replace(found, renaming=each.progress())
    return None
