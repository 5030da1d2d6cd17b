"""Edits that rules propose, not judged yet, and the judgement: the first one that the model finds likely enough."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event
from time import perf_counter

from mercury_engine.api import Control, FillRequest

from mercury_lsp.completion.next_edits.diagnostics import Evidence
from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.judging import MIN_PROBABILITY, probability_of_new, scoring_request
from mercury_lsp.completion.next_edits.places import RankedPlaces
from mercury_lsp.completion.suggestions import RenamingProgress, Suggestion
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.syntax import breaks

MIN_PLACE_CHANCE = 0.05
"""Least chance of a guess's place, unasked: of 180 guesses in commits' moments 65 are right and 63 disturb quiet ones;
of the 78 that are as likely as this 60 are right and eight disturb."""

ScoreTexts = Callable[[FillRequest, Sequence[str], Control], Awaitable[list[float] | None]]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A site of one version of a document, whose path the model sees."""

    snapshot: Snapshot
    path: str
    site: EditSite
    offered: Callable[[str], None]
    """Called with the suggestion's id when the edit is offered."""
    change: str = ""
    """The change that it repeats, as the model reads it; empty if it repeats none."""
    least: float = MIN_PROBABILITY
    """Least probability of the new text; at 0 the model is not asked."""
    progress: Callable[[], RenamingProgress | None] = lambda: None
    """How far the renaming is that it goes on with."""
    is_guess: bool = True
    """Whether it repeats a change for its words alone; not so where a name was renamed at its binding, a slip is
    corrected, or an example says where the change goes on."""


def likely_by_place(proposals: Sequence[Proposal], ranked: RankedPlaces | None) -> list[Proposal]:
    """The proposals without guesses where the head for places thinks an edit unlikely, if it can say."""

    def is_likely(each: Proposal) -> bool:
        if not each.is_guess or ranked is None:
            return True
        chance = ranked.chance_near(each.snapshot.uri, each.snapshot.source.line_of(each.site.start))
        return chance is None or chance >= MIN_PLACE_CHANCE

    return [each for each in proposals if is_likely(each)]


def by_evidence(proposals: Sequence[Proposal], evidence: Callable[[Snapshot], Evidence]) -> list[Proposal]:
    """The proposals for lines in which an error appeared after the user's change first, and no longer as guesses; then
    those for lines with a warning."""

    snapshots = {each.snapshot.uri: each.snapshot for each in proposals}
    found = {uri: evidence(snapshot) for uri, snapshot in snapshots.items()}

    def rank(each: Proposal) -> int:
        first, last = (each.snapshot.source.line_of(at) for at in (each.site.start, each.site.end))
        return found[each.snapshot.uri].rank(first, last)

    ranked = sorted(((rank(each), each) for each in proposals), key=lambda pair: pair[0])
    return [replace(each, is_guess=False) if number == 0 else each for number, each in ranked]


def by_line(sites: Sequence[EditSite], snapshot: Snapshot) -> Iterator[list[EditSite]]:
    """The sites by line, each line's from left to right; the lines in the order of their first sites."""
    lines: dict[int, list[EditSite]] = {}
    for site in sites:
        lines.setdefault(snapshot.source.line_of(site.start), []).append(site)
    return (sorted(each, key=lambda site: site.start) for each in lines.values())


async def first_likely(
    proposals: Sequence[Proposal], most: int, score: ScoreTexts, asked: Snapshot, cancel: Event
) -> list[Suggestion]:
    """The first edit that the model finds likely enough and that breaks no syntax; it judges at most `most` of them.

    `asked` is the document that the editor asked about. Raises Cancelled, and whatever the engine raises.
    """
    started, judged = perf_counter(), 0
    for each in proposals:
        site = each.site
        judged += each.least > 0
        if judged > most:
            break
        request = scoring_request(site, each.change, each.snapshot, each.path)
        if request is None:
            continue
        probability = 1.0
        if each.least:
            nats = await score(request, (site.old, site.new), Control(cancel))
            probability = probability_of_new(*nats) if nats is not None else 0.0
        if probability < each.least or breaks(each.snapshot, site.start, site.end, site.new):
            continue
        seconds = perf_counter() - started
        found = Suggestion.replacing(each.snapshot, site.start, site.end, site.new, probability, seconds)
        elsewhere = each.snapshot if each.snapshot.uri != asked.uri else None
        found = replace(found, renaming=each.progress(), elsewhere=elsewhere)
        each.offered(found.id)
        return [found]
    return []
