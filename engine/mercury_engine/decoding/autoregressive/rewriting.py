"""Rewriting a region: the model verifies its present text, and where it doubts that, writes what it would change.

A pass reads up to `PASS_ROWS` tokens of the present text as if they were typed. They are kept from the left while the
model gives each at least half of the mass. Where it doesn't, it probably wants a change there, even if each single
other token is less likely than the present one. So the likeliest of these begin a branch each: a hunk, written token by
token until whole lines of the present text follow again. The likeliest hunk is taken if it is more likely than the
lines as they are, otherwise these stay. The rewrite ends where the model ends its gap or continues with the text after
the region. Text that runs on beyond the bound is no hunk.

The probability of a hunk is the product of its tokens' probabilities. Present tokens within it, and the end where it
is, count as certain from `KEPT_SURE` on and proportionally below: a hundred tokens with .99 each are not in doubt. Nor
is the text around a hunk.

Dimensions: S rows, V vocabulary.
"""

import math
from collections.abc import Sequence
from contextlib import suppress

from mercury_engine.api import Rewrite, RewriteRequest
from mercury_engine.decoding.autoregressive.regions import Region, RegionReader
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.autoregressive.written_region import MORE_TOKENS, WrittenRegion, is_line_start
from mercury_engine.decoding.hypothesis import checked
from mercury_engine.models.arrays import Array, beside, best, logsumexp, replaced
from mercury_engine.models.batching import DeadlineReached, ForwardSteps
from mercury_engine.models.network import Network

PASS_ROWS = 32
"""Most rows of a pass; the scheduler lets no larger ones share a pass."""

KEPT_SURE = 0.9
"""Probability from which on a present token that stays is not in doubt."""

LEAST_KEPT = 0.5
"""Probability of a present token below which hunks that begin there are written."""

BRANCHES = 2
"""Most hunks that are written from one token."""

MIN_BRANCH = 0.05
"""Least probability of a hunk's first token."""


class Rewriter:
    """Rewrites for one model."""

    def __init__(self, network: Network, texts: list[str]) -> None:
        self._network, self._texts = network, texts

    def rewrite(self, request: RewriteRequest, regions: RegionReader) -> ForwardSteps[Rewrite]:
        """The rewrite of the request's region; unfinished when time is up. Raises ModelCorrupt for NaN."""
        region: Region | None = None
        with suppress(DeadlineReached):
            region = yield from regions.read(request)
        if region is None:
            return Rewrite(request.text, steps=0)
        written = yield from self._written(region)
        text = regions.text(region, written.ids, written.has_all) if written.hunks else request.text
        return written.rewrite(text)

    def _written(self, region: Region) -> ForwardSteps[WrittenRegion]:
        """What is written up to the end, the bound, or the deadline."""
        written = WrittenRegion(region, self._texts, run=len(region.ids))
        verifier = Verifier(self._network, region.context)
        with suppress(DeadlineReached):
            while not (written.ended or written.has_enough or written.is_over):
                draft = written.rest(PASS_ROWS - verifier.unread)
                read_SV = yield from verifier.verify(draft)
                written.steps += 1
                kept = len(written.ids)
                hunk = yield from self._keep_or_write(written, verifier, draft, read_SV)
                if hunk is None:
                    verifier.push(written.ids[kept:])
                else:
                    written, verifier = hunk
        return written

    def _keep_or_write(
        self, written: WrittenRegion, verifier: Verifier, draft: list[int], read_SV: list[Array]
    ) -> ForwardSteps[tuple[WrittenRegion, Verifier] | None]:
        """Keep present tokens from the left; the text with the first hunk that is likelier, if there is one."""
        for place, read_V in enumerate(read_SV):
            if self.kept(written, read_V) < LEAST_KEPT:
                hunk = yield from self._likeliest_hunk(written, verifier.fork(draft[:place]), read_SV[place:])
                if hunk is not None:
                    return hunk
                written.rejected += 1
            written.keep()
            if written.ended:
                break
        return None

    def _likeliest_hunk(
        self, written: WrittenRegion, verifier: Verifier, read_SV: Sequence[Array]
    ) -> ForwardSteps[tuple[WrittenRegion, Verifier] | None]:
        """The text with the likeliest hunk that begins here; None if the present lines are likelier."""
        found: tuple[WrittenRegion, Verifier] | None = None
        for token in self.firsts(written, read_SV[0]):
            branch = written.branch()
            self._add(branch, token, read_SV[0], is_kept=False)
            reading = verifier.fork([] if token is None else [token])
            is_whole = yield from self._finish(branch, reading)
            written.steps = branch.steps
            if is_whole and not branch.moves_blanks and (found is None or branch.probability > found[0].probability):
                found = branch, reading
        if found is None or found[0].probability <= self._stays(written, read_SV, found[0].end):
            return None
        branch, _ = found
        branch.add_hunk()
        branch.steps = written.steps
        return found

    def _finish(self, branch: WrittenRegion, verifier: Verifier) -> ForwardSteps[bool]:
        """Write a hunk from its first token to its end; False if that is too unlikely, or out of bounds."""
        least = branch.region.request.give_up_below
        most = len(branch.ids) + MORE_TOKENS
        while not branch.ended and branch.back is None:
            if branch.probability < least or len(branch.ids) > most or branch.is_over:
                return False
            draft = branch.draft(PASS_ROWS - verifier.unread)
            read_SV = yield from verifier.verify(draft)
            branch.steps += 1
            count = len(branch.ids)
            for place, read_V in enumerate(read_SV):
                token = self.choose(branch, read_V)
                if self._is_back(branch, token):
                    branch.back = branch.next, len(branch.ids)
                self._add(branch, token, read_V, branch.is_at_end if token is None else branch.expects(token))
                if branch.ended or branch.back is not None or draft[place : place + 1] != [token]:
                    break
            verifier.push(branch.ids[count:])
        return branch.back is not None or branch.probability >= least

    def kept(self, written: WrittenRegion, read_V: Array) -> float:
        """The probability that the present text goes on, or ends where it does. Raises ModelCorrupt."""
        checked(float(read_V[0]))
        if written.next < written.region.drafted:
            return math.exp(float(read_V[written.region.ids[written.next]]))
        return math.exp(_end_logp(written, read_V))

    def choose(self, written: WrittenRegion, read_V: Array) -> int | None:
        """The most likely token; None if the rewrite more likely ends here. Raises ModelCorrupt."""
        region = written.region
        content_V = replaced(read_V, region.ends, -math.inf)
        token = best(content_V)
        log_odds = _end_logp(written, read_V) - checked(float(content_V[token]))
        least = 0.0 if written.is_at_end else math.log(region.early_end_odds)
        ends = log_odds >= least and (region.ends_anywhere or is_line_start(written.text))
        return None if ends else token

    def firsts(self, written: WrittenRegion, read_V: Array) -> list[int | None]:
        """The likeliest first tokens of a hunk, None for the end."""
        region, found = written.region, list[int | None]()
        others_V = replaced(read_V, region.ends, -math.inf)
        if written.next < region.drafted:
            others_V = replaced(others_V, [region.ids[written.next]], -math.inf)
            if self.choose(written, read_V) is None:
                found.append(None)
        for rank in range(BRANCHES - len(found)):
            token = best(others_V, rank)
            if math.exp(float(others_V[token])) >= MIN_BRANCH:
                found.append(token)
        return found

    def _add(self, branch: WrittenRegion, token: int | None, read_V: Array, is_kept: bool) -> None:
        """Write a token of a hunk, or its end; `is_kept`: the present text goes on, or ends, alike."""
        probability = math.exp(_end_logp(branch, read_V) if token is None else float(read_V[token]))
        branch.probability *= min(1.0, probability / KEPT_SURE) if is_kept else probability
        if token is None:
            branch.ended = True
        else:
            branch.write(token)

    def _is_back(self, branch: WrittenRegion, token: int | None) -> bool:
        """Whether whole lines of the present text follow, with this token first."""
        if not branch.is_at_same_line:
            return False
        return branch.expects(token) if token is not None else branch.next >= branch.region.drafted

    def _stays(self, written: WrittenRegion, read_SV: Sequence[Array], end: int) -> float:
        """The probability that the present tokens up to `end` stay, as far as they were read, and at least one."""
        probability = self.kept(written, read_SV[0])
        stay = written.region.ids[written.next + 1 : min(end, written.region.drafted)]
        for read_V, token in zip(read_SV[1:], stay, strict=False):
            probability *= min(1.0, math.exp(float(read_V[token])) / KEPT_SURE)
        return probability


def _end_logp(written: WrittenRegion, read_V: Array) -> float:
    """Log-probability that the rewrite ends here."""
    ends = written.region.late_ends if written.is_at_end else written.region.ends
    return logsumexp(read_V[beside(ends, read_V)])
