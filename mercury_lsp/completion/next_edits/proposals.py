"""Edits that rules propose, not judged yet, and the judgement: the first one that the model finds likely enough."""

from asyncio import gather
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event
from time import perf_counter

from mercury_engine.api import Control, FillRequest

from mercury_lsp.completion.next_edits.diagnostics import Evidence
from mercury_lsp.completion.next_edits.edit_sites import EditSite, joined
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
    """Sites in one line of a version of a document, from left to right, to be edited at once."""

    snapshot: Snapshot
    path: str
    sites: tuple[EditSite, ...]
    change: str = ""
    """The change that it repeats, as the model reads it; empty if it repeats none."""
    least: float = MIN_PROBABILITY
    """Least probability of the new text; at 0 the model is not asked."""
    progress: Callable[[], RenamingProgress | None] = lambda: None
    """How far the renaming is that it goes on with."""
    is_guess: bool = True
    """Whether it repeats a change for its words alone; not so where a name was renamed at its binding, or two examples
    say how the change goes on."""

    @property
    def site(self) -> EditSite:
        """Its sites as one."""
        return joined(self.sites, self.snapshot)


def likely_by_place(proposals: Sequence[Proposal], ranked: RankedPlaces | None) -> list[Proposal]:
    """The proposals without guesses where the head for places thinks an edit unlikely, if it can say."""

    def is_likely(each: Proposal) -> bool:
        if not each.is_guess or ranked is None:
            return True
        chance = ranked.chance_near(each.snapshot.uri, each.snapshot.source.line_of(each.sites[0].start))
        return chance is None or chance >= MIN_PLACE_CHANCE

    return [each for each in proposals if is_likely(each)]


def by_evidence(proposals: Sequence[Proposal], evidence: Callable[[Snapshot], Evidence]) -> list[Proposal]:
    """The proposals for lines in which an error appeared after the user's change first, and no longer as guesses; then
    those for lines with a warning."""

    snapshots = {each.snapshot.uri: each.snapshot for each in proposals}
    found = {uri: evidence(snapshot) for uri, snapshot in snapshots.items()}

    def rank(each: Proposal) -> int:
        first, last = (each.snapshot.source.line_of(at) for at in (each.sites[0].start, each.sites[-1].end))
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
    proposals: Sequence[Proposal], most: int, score: ScoreTexts, silence: list[str], cancel: Event
) -> tuple[Proposal, Suggestion] | None:
    """The first proposal that is likely enough and breaks no syntax; the model judges at most `most` of them.

    The model sees them in one batch. Why others aren't shown is added to `silence`. Raises Cancelled, and whatever the
    engine raises.
    """
    started = perf_counter()
    asked = _at_most(proposals, most)
    is_first_exact = bool(asked) and not asked[0].least and not _breaks(asked[0])
    probabilities = [1.0] if is_first_exact else await gather(*(_probability(each, score, cancel) for each in asked))
    for each, probability in zip(asked, probabilities, strict=False):
        line = each.snapshot.source.line_of(each.sites[0].start) + 1
        if probability < each.least:
            silence.append(f"line {line}: a rule's edit has probability {probability:.2f}, below {each.least}")
        elif probability and _breaks(each):
            silence.append(f"line {line}: a rule's edit would break the syntax")
        elif probability:
            site, seconds = each.site, perf_counter() - started
            found = Suggestion.replacing(each.snapshot, site.start, site.end, site.new, probability, seconds)
            return each, replace(found, renaming=each.progress())
    return None


def _at_most(proposals: Sequence[Proposal], most: int) -> list[Proposal]:
    """The proposals before the one after `most` that the model must judge."""
    found, judged = list[Proposal](), 0
    for each in proposals:
        judged += each.least > 0
        if judged > most:
            break
        found.append(each)
    return found


async def _probability(proposal: Proposal, score: ScoreTexts, cancel: Event) -> float:
    """That of the new text; 1 if the model isn't asked, 0 if it must not see the lines, or there is none."""
    site = proposal.site
    request = scoring_request(site, proposal.change, proposal.snapshot, proposal.path)
    if request is None or not proposal.least:
        return float(request is not None)
    nats = await score(request, (site.old, site.new), Control(cancel))
    return probability_of_new(*nats) if nats is not None else 0.0


def _breaks(proposal: Proposal) -> bool:
    site = proposal.site
    return breaks(proposal.snapshot, site.start, site.end, site.new)
