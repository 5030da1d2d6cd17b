"""Draft choice: repeat or denoised block, slot by slot whichever is surer, and as many tokens as pay for their rows.

A repeat of the last tokens costs nothing, a block drafter's pass a tenth of the reader's; it is only asked where the
repeat promises little. Then the candidates for a slot are the block's best token and, while the draft is the repeat so
far, the repeat's. Chances come from logistic regressions on held-out text.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from mercury_engine.api import Source
from mercury_engine.denoising.ngram_lookup import NgramMatch
from mercury_engine.models.network import BlockDrafter, ReaderState

TOKEN_WORTH = 0.8
"""What a token without a pass of its own is worth, in passes. From 0.7 to 0.9 makes no difference."""

REPEAT_WEIGHTS = (-1.042, 1.474, 1.051, -0.1)
"""Weights of `repeat_features`, fitted on what the bundled reader writes in 240 fills."""

BLOCK_WEIGHTS = (-0.462, 0.647, -0.057, 0.092, -0.367, 1.629, 0.957, 0.41, -1.129, -0.398)
"""Weights of `block_features`, fitted there with a drafter that had learned from 785,696 places."""

LARGEST_LOG_ODDS = 6.0
"""Bound of log-odds that are features."""


@dataclass(frozen=True, slots=True)
class PassCosts:
    """Costs in passes of one row."""

    row: float = 0.15
    """Each further row of a pass."""
    block: float = 0.12
    """A pass of the block drafter."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens to verify."""

    ids: list[int] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
    """The chance of each, if all before it are right; empty if it is not known."""
    is_whole: bool = False
    """Whether an end marker follows."""

    @classmethod
    def of(cls, source: Source, ids: list[int], is_whole: bool = False) -> "Draft":
        """A draft from one source."""
        return cls(ids, [source] * len(ids), [], is_whole)

    def first(self, tokens: int) -> "Draft":
        """The first tokens of it."""
        return Draft(self.ids[:tokens], self.sources[:tokens], self.chances[:tokens])


Drawn = Iterator[tuple[int, Source, float]]
"""Tokens of a draft with their sources and chances, one behind the other."""


class DraftChoice:
    """Chooses drafts from repeats and from a block drafter."""

    def __init__(self, drafter: BlockDrafter, costs: PassCosts | None = None) -> None:
        self.drafter, self.costs = drafter, costs or PassCosts()

    def choose(self, match: NgramMatch, state: ReaderState | None, known: int, most: int) -> Draft:
        """The draft behind the token `known`, at most `most` tokens; without a state from the repeat alone."""
        repeat, gain = self._worth_a_row(_repeated(match, most))
        if state is None or most < 1 or gain > self.costs.block:
            return repeat
        return self._worth_a_row(self._denoised(match, state, known, most))[0]

    def _worth_a_row(self, drawn: Drawn) -> tuple[Draft, float]:
        """The first tokens that are each worth more than a row, and the passes that they are expected to save."""
        draft, chance, gain = Draft(), 1.0, 0.0
        for token, source, each in drawn:
            chance *= each
            if chance * TOKEN_WORTH <= self.costs.row:
                break
            gain += chance * TOKEN_WORTH - self.costs.row
            draft.ids.append(token)
            draft.sources.append(source)
            draft.chances.append(each)
        return draft, gain

    def _denoised(self, match: NgramMatch, state: ReaderState, known: int, most: int) -> Drawn:
        block, before, repeats = self.drafter.denoise(state, known), known, True
        for slot in range(min(most, self.drafter.slots)):
            repeated = match.draft[slot] if repeats and slot < len(match.draft) else None
            token, logp, repeated_logp = block.best(slot, before, repeated)
            behind = match if repeated is not None else None
            source: Source = "both" if token == repeated else "block"
            chance = _chance(BLOCK_WEIGHTS, block_features(slot, logp, behind, token == repeated))
            if repeated is not None and token != repeated:
                other = _chance(BLOCK_WEIGHTS, block_features(slot, repeated_logp, behind, True))
                token, source, chance = (repeated, "repeat", other) if other > chance else (token, source, chance)
            repeats, before = token == repeated, token
            yield token, source, chance


def _repeated(match: NgramMatch, most: int) -> Drawn:
    for slot, token in enumerate(match.draft[:most]):
        yield token, "repeat", _chance(REPEAT_WEIGHTS, repeat_features(slot, match))


def _chance(weights: tuple[float, ...], features: list[float]) -> float:
    return 1 / (1 + math.exp(-sum(weight * x for weight, x in zip(weights, features, strict=True))))


def repeat_features(slot: int, match: NgramMatch) -> list[float]:
    """What the chance of a repeat's token depends on: length, and how many of the equally long matches agree."""
    return [1.0, *_support(slot, match), math.log(match.support[slot])]


def block_features(slot: int, logp: float, match: NgramMatch | None, is_repeat: bool) -> list[float]:
    """What the chance of a candidate depends on beside a block.

    `logp` is the block's; `match` is None where the draft is no repeat.
    """
    odds = -LARGEST_LOG_ODDS
    if logp > odds:
        odds = min(LARGEST_LOG_ODDS, logp - math.log(max(1e-9, -math.expm1(logp))))
    support = [0.0, 0.0] if match is None else _support(slot, match)
    agrees = [1.0, odds, *support] if is_repeat else [0.0] * 4
    differs = [0.0] * 3 if is_repeat or match is None else [1.0, *support]
    return [1.0, odds, float(slot), *agrees, *differs]


def _support(slot: int, match: NgramMatch) -> list[float]:
    before, after = match.support[slot : slot + 2]
    share = min(0.999, max(0.001, (after - 0.5) / (before + 0.5)))
    return [math.log1p(match.length + slot), math.log(share / (1 - share))]
