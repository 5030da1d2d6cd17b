"""Rewriting a region: the reader verifies its present text and writes its own where it would not write that.

A pass reads up to `PASS_ROWS` tokens of the present text as if they were typed. They are kept from the left while each
is the most likely token; the first one that is not gives way to the reader's own, and the draft resumes in the present
text behind the change (`present_text.py`). So text that stays costs one pass for many tokens, and a change costs a
pass or two more. The rewrite ends where the reader ends its gap or continues with the text behind the region. Text that
runs on beyond the bound is no answer.

The chance of a rewrite is the product of its tokens' probabilities. A present token that stays, and the end where it
is, count as certain from `KEPT_SURE` on and proportionally below: a hundred tokens with .99 each are not in doubt. So
the chance never falls when any probability rises.

Dimensions: S rows, V vocabulary.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from mercury_engine.api import RewriteRequest
from mercury_engine.denoising.present_text import PresentText
from mercury_engine.denoising.verifier import CanvasContext, Verifier
from mercury_engine.errors import Cancelled, ModelCorrupt
from mercury_engine.models.arrays import Array, IdArray, beside, best, logsumexp, replaced
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.models.network import Network

PASS_ROWS = 32
"""Most rows of a pass; the scheduler lets no larger ones share a pass."""

KEPT_SURE = 0.9
"""Probability from which on a present token that stays is not in doubt."""

MORE_LINES = 8
"""Lines by which a rewrite may be longer than its region."""

LINE_TOKENS = 24
"""Tokens granted for each of these lines."""


@dataclass(frozen=True, slots=True)
class Region:
    """A region in tokens."""

    ids: list[int]
    """Its present text, then the beginning of the text behind it: written behind a line break, it ends the rewrite."""
    length: int
    """Tokens before the first one that reaches behind the region."""
    follows: str
    """The text of the others; empty at a file's end."""
    drafted: int
    """Tokens that are drafted; readers with a token that ends a gap need no draft of the text behind it."""
    ends: IdArray
    """Tokens that end the rewrite; none of them is ever written."""
    late_ends: IdArray
    """Tokens that end it once nothing of the region is left: at a file's end a blank line does, too."""
    lines: int
    """Line breaks of its present text."""
    ends_anywhere: bool = False
    """Whether it may end inside a line, as at a file's end that has no line break."""
    early_end_odds: float = 1.0
    """How many times as likely as going on the end must be while present text is left."""


@dataclass(slots=True)
class Draft:
    """What is written so far."""

    present: PresentText
    text: str = ""
    chance: float = 1.0
    stays: float = 1.0
    """The chance that nothing changes, up to the first change."""
    has_changed: bool = False
    ended: bool = False
    steps: int = 0


class Rewriter:
    """Rewrites for one model."""

    def __init__(self, reader: Network, texts: list[str]) -> None:
        self._reader, self._texts = reader, texts

    def run(
        self, request: RewriteRequest, region: Region, canvas_context: CanvasContext, started: float
    ) -> ForwardSteps[Draft]:
        """Write until the end, the bound, the deadline or the cancel flag; `started` is a time of `perf_counter`.

        Raises Cancelled, and ModelCorrupt when the weights compute NaN.
        """
        verifier = Verifier.behind(self._reader, canvas_context)
        draft = Draft(PresentText(region.ids, region.length, self._texts))
        while not draft.ended and _within_bounds(draft, region) and draft.chance >= request.give_up_below:
            if request.cancel.is_set():
                raise Cancelled("superseded by a newer request")
            if request.deadline_ms is not None and (time.perf_counter() - started) * 1e3 >= request.deadline_ms:
                break
            rows = PASS_ROWS - len(verifier.pending)
            ids = draft.present.draft(rows, region.drafted, lambda written: _found(canvas_context, written))
            [read_SV] = yield from verifier.verify([[]], [ids])
            settled = len(draft.present.written)
            self._accept(draft, region, ids, read_SV)
            verifier.push(draft.present.written[settled:])
            draft.steps += 1
        return draft

    def _accept(self, draft: Draft, region: Region, ids: list[int], read_SV: list[Array]) -> None:
        """Write tokens from the left while the reader agrees with the draft `ids`, and its own behind that."""
        for i, read_V in enumerate(read_SV):
            token = self._settle(draft, region, read_V)
            if draft.ended or i >= len(ids) or token != ids[i]:
                break

    def choose(self, draft: Draft, region: Region, read_V: Array) -> int | None:
        """The most likely token; None if the rewrite more likely ends here. Raises ModelCorrupt."""
        content_V = replaced(read_V, region.ends, -math.inf)
        token = best(content_V)
        if math.isnan(chance := float(content_V[token])):
            raise ModelCorrupt("the weights compute NaN; fetch the model again, or set mercury.model to null")
        return None if _ends(draft, region, _end_chance(draft, region, read_V) - chance) else token

    def _settle(self, draft: Draft, region: Region, read_V: Array) -> int | None:
        """Write the chosen token; None if the rewrite ends instead."""
        present = draft.present
        token = self.choose(draft, region, read_V)
        if token is None:
            draft.ended = True
            self._count(draft, math.exp(_end_chance(draft, region, read_V)), present.is_at_end)
            return None
        is_kept = present.expects(token)
        instead = present.ids[present.next] if present.next < len(present.ids) else None
        chances = [math.exp(float(read_V[each])) for each in (token, instead) if each is not None]
        self._count(draft, chances[0], is_kept, *chances[1:])
        present.write(token)
        draft.text += self._texts[token]
        if present.has_all and draft.text.endswith(region.follows):
            draft.ended = _is_line_start(draft.text.removesuffix(region.follows))
        return token

    @staticmethod
    def _count(draft: Draft, chance: float, is_kept: bool, instead: float = 0.0) -> None:
        """Count a token's probability; `instead` is that of the present one in its place."""
        draft.chance *= min(1.0, chance / KEPT_SURE) if is_kept else chance
        if not draft.has_changed:
            draft.stays *= min(1.0, (chance if is_kept else instead) / KEPT_SURE)
        draft.has_changed |= not is_kept


def _end_chance(draft: Draft, region: Region, read_V: Array) -> float:
    """Log-probability that the rewrite ends here."""
    ends = region.late_ends if draft.present.is_at_end else region.ends
    return logsumexp(read_V[beside(ends, read_V)])


def _ends(draft: Draft, region: Region, log_odds: float) -> bool:
    """Whether the rewrite ends here, given the odds of that against going on."""
    least = 0.0 if draft.present.is_at_end else math.log(region.early_end_odds)
    return log_odds >= least and (region.ends_anywhere or _is_line_start(draft.text))


def _is_line_start(text: str) -> bool:
    return not text or text.endswith("\n")


def _within_bounds(draft: Draft, region: Region) -> bool:
    tokens = len(region.ids) + MORE_LINES * LINE_TOKENS
    return draft.text.count("\n") <= region.lines + MORE_LINES and len(draft.present.written) <= tokens


def _found(canvas_context: CanvasContext, written: Sequence[int]) -> tuple[int, list[int]]:
    """The longest match of the last tokens in the context, see `PresentText.draft`."""
    match = canvas_context.ngrams.find((*canvas_context.text, *written))
    return match.length, match.draft
