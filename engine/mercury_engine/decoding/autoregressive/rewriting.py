"""Rewriting a region: the model verifies its present text, and where it doubts that, writes what it would change.

A pass reads up to `PASS_ROWS` tokens of the present text as if they were typed. They are kept from the left while the
model gives each at least half of the mass. Where it doesn't, it probably wants a change there, even if each single
other token is less likely than the present one. So the likeliest of these begin a branch each: a hunk, written token by
token until whole lines of the present text follow again (`present_text.py`). The likeliest hunk is taken if it is more
likely than the lines as they are, otherwise these stay. The rewrite ends where the model ends its gap or continues
with the text after the region. Text that runs on beyond the bound is no hunk.

The probability of a hunk is the product of its tokens' probabilities. Present tokens within it, and the end where it
is, count as certain from `KEPT_SURE` on and proportionally below: a hundred tokens with .99 each are not in doubt. Nor
is the text around a hunk.

Dimensions: S rows, V vocabulary.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from mercury_engine.api import Rewrite, RewriteRequest
from mercury_engine.decoding.autoregressive.present_text import PresentText
from mercury_engine.decoding.autoregressive.regions import ReadRegion, Region, RegionReader
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.autoregressive.written_region import (
    WrittenHunk,
    WrittenRegion,
    is_line_start,
    line_count,
    rewrite_of,
)
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

MAX_REJECTED = 6
"""Tokens of a region from which hunks are written in vain before it is left."""

MORE_LINES = 8
"""Lines by which a rewrite may be longer than its region."""

LINE_TOKENS = 24
"""Tokens granted for each of these lines."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A rewrite, and what was read for it."""

    request: RewriteRequest
    read: ReadRegion

    @property
    def region(self) -> Region:
        return self.read.region

    def is_over(self, draft: WrittenRegion) -> bool:
        """Whether nothing more may be written."""
        tokens = len(self.region.ids) + MORE_LINES * LINE_TOKENS
        is_long = draft.text.count("\n") > self.region.lines + MORE_LINES or len(draft.present.written) > tokens
        return is_long or draft.rejected >= MAX_REJECTED


class Rewriter:
    """Rewrites for one model."""

    def __init__(self, network: Network, texts: list[str]) -> None:
        self._network, self._texts = network, texts

    def rewrite(self, request: RewriteRequest, regions: RegionReader) -> ForwardSteps[Rewrite]:
        """The rewrite of the request's region; unfinished when time is up. Raises ModelCorrupt for NaN."""
        read: ReadRegion | None = None
        with suppress(DeadlineReached):
            read = yield from regions.read(request)
        if read is None:
            return Rewrite(request.text, steps=0)
        return rewrite_of(request, read, (yield from self._written(_Task(request, read))), regions)

    def _written(self, task: _Task) -> ForwardSteps[WrittenRegion]:
        """What is written up to the end, the bound, or the deadline."""
        region, context = task.region, task.read.context
        draft = WrittenRegion(PresentText(region.ids, region.length, self._texts))
        verifier = Verifier(self._network, context)
        with suppress(DeadlineReached):
            while not (draft.ended or self._has_enough(task, draft) or task.is_over(draft)):
                ids = draft.present.rest(PASS_ROWS - verifier.unread, region.drafted)
                read_SV = yield from verifier.verify(ids)
                draft.steps += 1
                before = len(draft.present.written)
                hunk = yield from self._keep_or_write(task, draft, verifier, ids, read_SV)
                if hunk is None:
                    verifier.push(draft.present.written[before:])
                else:
                    draft, verifier = hunk
        return draft

    def _keep_or_write(
        self, task: _Task, draft: WrittenRegion, verifier: Verifier, ids: list[int], read_SV: list[Array]
    ) -> ForwardSteps[tuple[WrittenRegion, Verifier] | None]:
        """Keep present tokens from the left; the draft with the first hunk that is likelier, if there is one."""
        for place, read_V in enumerate(read_SV):
            if self.kept(draft, task.region, read_V) < LEAST_KEPT:
                forked = verifier.fork(ids[:place])
                hunk = yield from self._likeliest_hunk(task, draft, forked, read_SV[place:])
                if hunk is not None:
                    return hunk
                draft.rejected += 1
            self._keep(draft, task.region)
            if draft.ended:
                break
        return None

    def kept(self, draft: WrittenRegion, region: Region, read_V: Array) -> float:
        """The probability that the present text goes on, or ends where it does. Raises ModelCorrupt."""
        present = draft.present
        checked(float(read_V[0]))
        if present.next < region.drafted:
            return math.exp(float(read_V[present.ids[present.next]]))
        return math.exp(_end_logp(draft, region, read_V))

    def choose(self, draft: WrittenRegion, region: Region, read_V: Array) -> int | None:
        """The most likely token; None if the rewrite more likely ends here. Raises ModelCorrupt."""
        content_V = replaced(read_V, region.ends, -math.inf)
        token = best(content_V)
        logp = checked(float(content_V[token]))
        return None if _ends(draft, region, _end_logp(draft, region, read_V) - logp) else token

    def firsts(self, draft: WrittenRegion, region: Region, read_V: Array) -> list[int | None]:
        """The likeliest first tokens of a hunk, None for the end."""
        present, found = draft.present, list[int | None]()
        if self.choose(draft, region, read_V) is None and present.next < region.drafted:
            found.append(None)
        others_V = replaced(read_V, region.ends, -math.inf)
        if present.next < region.drafted:
            others_V = replaced(others_V, [present.ids[present.next]], -math.inf)
        for rank in range(BRANCHES - len(found)):
            token = best(others_V, rank)
            if math.exp(float(others_V[token])) >= MIN_BRANCH:
                found.append(token)
        return found

    def _keep(self, draft: WrittenRegion, region: Region) -> None:
        """Write the next present token, or end where the region does."""
        if draft.present.next < region.drafted:
            self._write(draft, region, draft.present.ids[draft.present.next])
        else:
            draft.ended = True

    def _write(self, draft: WrittenRegion, region: Region, token: int) -> None:
        draft.present.write(token)
        draft.text += self._texts[token]
        if draft.present.has_all and draft.text.endswith(region.follows):
            draft.ended = is_line_start(draft.text.removesuffix(region.follows))

    def _has_enough(self, task: _Task, draft: WrittenRegion) -> bool:
        """Whether a likely hunk is written, and a line after it that stays."""
        least = task.request.enough
        if least is None or not draft.hunks or draft.hunks[-1].probability < least:
            return False
        return draft.text.count("\n") > draft.hunks[-1].new_end

    def _likeliest_hunk(
        self, task: _Task, draft: WrittenRegion, verifier: Verifier, read_SV: Sequence[Array]
    ) -> ForwardSteps[tuple[WrittenRegion, Verifier] | None]:
        """The draft with the likeliest hunk that begins here; None if the present lines are likelier."""
        found: tuple[WrittenRegion, Verifier] | None = None
        region = task.region
        for token in self.firsts(draft, region, read_SV[0]):
            branch, reading = draft.branch(), verifier.fork([])
            self._begin(branch, region, token, read_SV[0])
            is_whole = yield from self._finish(task, branch, reading)
            draft.steps = branch.steps
            is_likelier = found is None or branch.probability > found[0].probability
            if is_whole and is_likelier and not self._moves_blanks(draft, branch, region):
                found = branch, reading
        if found is None:
            return None
        branch, reading = found
        if branch.probability <= self._stays(draft, region, read_SV, branch.end(region)[1]):
            return None
        branch.hunks.append(self._hunk(draft, branch, region))
        branch.steps = draft.steps
        return branch, reading

    def _begin(self, draft: WrittenRegion, region: Region, token: int | None, read_V: Array) -> None:
        """Write a hunk's first token."""
        if token is None:
            draft.probability, draft.ended = math.exp(_end_logp(draft, region, read_V)), True
        else:
            draft.probability = math.exp(float(read_V[token]))
            self._write(draft, region, token)

    def _finish(self, task: _Task, draft: WrittenRegion, verifier: Verifier) -> ForwardSteps[bool]:
        """Write a hunk up to its end; False if that is too unlikely, or out of bounds."""
        region, lookup = task.region, lambda written: _found(task.read, written)
        begun = len(draft.present.written)
        verifier.push(draft.present.written[-1:] if not draft.ended else [])
        while not draft.ended:
            is_long = len(draft.present.written) - begun > MORE_LINES * LINE_TOKENS
            if is_long or draft.probability < task.request.give_up_below or task.is_over(draft):
                return False
            ids = draft.present.draft(PASS_ROWS - verifier.unread, region.drafted, lookup)
            read_SV = yield from verifier.verify(ids)
            draft.steps += 1
            count = len(draft.present.written)
            for i, read_V in enumerate(read_SV):
                token = self.choose(draft, region, read_V)
                if self._is_back(draft, region, token):
                    draft.back = len(draft.present.written), draft.present.next
                    verifier.push(draft.present.written[count:])
                    self._add(draft, region, token, read_V)
                    verifier.push(draft.present.written[draft.back[0] :])
                    return True
                self._add(draft, region, token, read_V)
                if draft.ended or i >= len(ids) or token != ids[i]:
                    break
            verifier.push(draft.present.written[count:])
        return draft.probability >= task.request.give_up_below

    def _add(self, draft: WrittenRegion, region: Region, token: int | None, read_V: Array) -> None:
        """Write a token of a hunk, or its end."""
        present = draft.present
        if token is None:
            probability, is_kept = math.exp(_end_logp(draft, region, read_V)), present.is_at_end
        else:
            probability, is_kept = math.exp(float(read_V[token])), present.expects(token)
        draft.probability *= min(1.0, probability / KEPT_SURE) if is_kept else probability
        draft.ended |= token is None
        if token is not None:
            self._write(draft, region, token)

    def _is_back(self, draft: WrittenRegion, region: Region, token: int | None) -> bool:
        """Whether whole lines of the present text follow, with this token first."""
        present = draft.present
        if not (present.is_behind_same_break or (is_line_start(draft.text) and present.is_at_line_start)):
            return False
        return present.expects(token) if token is not None else present.next >= region.drafted

    def _stays(self, draft: WrittenRegion, region: Region, read_SV: Sequence[Array], end: int) -> float:
        """The probability that the present tokens up to `end` stay, as far as they were read, and at least one."""
        present, probability = draft.present, self.kept(draft, region, read_SV[0])
        for read_V, token in zip(read_SV[1:], present.ids[present.next + 1 : min(end, region.drafted)], strict=False):
            probability *= min(1.0, math.exp(float(read_V[token])) / KEPT_SURE)
        return probability

    def _hunk(self, before: WrittenRegion, after: WrittenRegion, region: Region) -> WrittenHunk:
        """The lines between two drafts."""
        old, new = self._texts_of(after, region)
        start = self._text(region.ids[: before.present.next]).count("\n")
        end, new_end = (line_count(each) if after.back is None else each.count("\n") for each in (old, new))
        return WrittenHunk(start, end, before.text.count("\n"), new_end, after.probability)

    def _moves_blanks(self, before: WrittenRegion, after: WrittenRegion, region: Region) -> bool:
        """Whether a hunk only changes blanks and line breaks."""
        old, new = self._texts_of(after, region)
        start = self._text(region.ids[: before.present.next])
        return "".join(old[len(start) :].split()) == "".join(new[len(before.text) :].split())

    def _texts_of(self, draft: WrittenRegion, region: Region) -> tuple[str, str]:
        """The present text up to the end of the hunk being written, and the new one."""
        written, present = draft.end(region)
        new = self._text(draft.present.written[:written])
        if draft.back is None and draft.present.has_all:
            new = new.removesuffix(region.follows)
        return self._text(region.ids[: min(present, region.length)]), new

    def _text(self, ids: Sequence[int]) -> str:
        return "".join(self._texts[token] for token in ids)


def _end_logp(draft: WrittenRegion, region: Region, read_V: Array) -> float:
    """Log-probability that the rewrite ends here."""
    ends = region.late_ends if draft.present.is_at_end else region.ends
    return logsumexp(read_V[beside(ends, read_V)])


def _ends(draft: WrittenRegion, region: Region, log_odds: float) -> bool:
    """Whether the rewrite ends here, given the odds of that against going on."""
    least = 0.0 if draft.present.is_at_end else math.log(region.early_end_odds)
    return log_odds >= least and (region.ends_anywhere or is_line_start(draft.text))


def _found(read: ReadRegion, written: Sequence[int]) -> tuple[int, list[int]]:
    """The longest match of the last tokens in the context, see `PresentText.draft`."""
    match = read.drafter.match(written)
    return match.length, match.draft
