"""What a masked model learns from: texts of a fixed number of tokens, with a gap under noise.

The gap's slots hold its tokens, sometimes followed by slots to delete. Some are masked; two masked neighbours may be
merged into one that is to be expanded, which teaches the model to find a gap's length: DreamOn, arXiv 2602.01326.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from mercury_engine.prompt.tokenizer import Tokenizer

from mercury_lab.training.examples.gaps import GapSampler, GapSettings
from mercury_lab.training.examples.mixture import Mixture

SPANS = GapSettings(rest_of_line=0.3, random_span=0.3)
"""Shares of gaps; the others are of whole lines."""

MOST_SLOTS = 64

FULLY_MASKED = 0.3
"""Share of gaps in which every slot is masked: fills begin so, and end after few steps."""

WITH_DELETES = 0.5
"""Share of gaps with slots to delete."""

DELETE_WEIGHT = 0.25
"""Weight of a slot to delete, relative to one with a token: there are many, and they are alike."""

BEFORE = 0.75
"""Share of the text around a gap that stands before it."""

CHARS_PER_TOKEN = 6
"""More than tokens of code have on average, so that a cut window has enough of them."""


@dataclass(frozen=True, slots=True)
class MaskedTokens:
    """Token ids with a meaning in the vocabulary of the denoiser."""

    mask: int
    expand: int
    delete: int

    @classmethod
    def of(cls, tokenizer: Tokenizer, vocabulary: int) -> "MaskedTokens":
        """Rows of the embedding without a token, or else the last special tokens; texts end with the one to delete."""
        rows = [*sorted(tokenizer.special_ids), *range(tokenizer.size, min(vocabulary, tokenizer.size + 2))]
        expand, mask = [row for row in rows if row != tokenizer.start_id][-2:]
        return cls(mask, expand, tokenizer.start_id)


@dataclass(frozen=True, slots=True)
class Canvas:
    """A text with a gap under noise."""

    ids: tuple[int, ...]
    targets: tuple[tuple[int, int, float], ...]
    """Masked places, the tokens that they should get, and how much each counts."""


def canvas(
    before: Sequence[int],
    middle: Sequence[int],
    after: Sequence[int],
    tokens: MaskedTokens,
    rng: random.Random,
    length: int | None = None,
) -> Canvas | None:
    """A text of so many tokens (None: all of them) whose middle is under noise; None where there are too few."""
    ids, targets = _noise(middle, tokens, rng)
    if length is not None:
        room = length - len(ids)
        left = max(min(len(before), round(BEFORE * room)), room - len(after))
        if room < 1 or not 1 <= left <= len(before):
            return None
        before, after = before[len(before) - left :], after[: room - left]
    first = len(before)
    return Canvas((*before, *ids, *after), tuple((first + at, token, weight) for at, token, weight in targets))


def _noise(
    middle: Sequence[int], tokens: MaskedTokens, rng: random.Random
) -> tuple[list[int], list[tuple[int, int, float]]]:
    """The slots of a gap, and targets as in a `Canvas`."""
    most = MOST_SLOTS - len(middle)
    deletes = rng.randint(1, most) if most > 0 and rng.random() < WITH_DELETES else 0
    slots = [*middle, *[tokens.delete] * deletes]
    rate = 1.0 if rng.random() < FULLY_MASKED else rng.random()
    masked = [rng.random() < rate for _ in slots]
    masked[rng.randrange(len(slots))] = True
    merging = 0.5 if rng.random() < 0.5 else 1 / sum(masked)
    ids, targets, at = list[int](), list[tuple[int, int, float]](), 0
    while at < len(slots):
        is_merged = at + 1 < len(middle) and masked[at] and masked[at + 1] and rng.random() < merging
        is_kept = at < len(middle)
        if masked[at]:
            wanted = tokens.expand if is_merged else slots[at]
            targets.append((len(ids), wanted, 1.0 if is_kept else DELETE_WEIGHT))
        ids.append(tokens.mask if masked[at] else slots[at])
        at += 1 + is_merged
    return ids, targets


@dataclass(frozen=True)
class CanvasSampler:
    """Draws canvases of a corpus; equal generators give equal canvases."""

    tokenizer: Tokenizer
    mixture: Mixture
    tokens: MaskedTokens
    gaps: int
    """Gaps of a window."""
    length: int = 512
    """Tokens of a text; files with fewer are left out."""

    def sample(self, rng: random.Random) -> list[Canvas]:
        """The canvases of one window; may be empty."""
        drawn = GapSampler(rng, SPANS).places(self.mixture.sample(rng), self.gaps)
        if drawn is None:
            return []
        text, _, spans = drawn
        found = (self._canvas(text, start, end, rng) for start, end in spans if text[start:end].strip())
        return [each for each in found if each is not None]

    def _canvas(self, text: str, start: int, end: int, rng: random.Random) -> Canvas | None:
        """The canvas of a gap; None where it has too many tokens, or the text too few."""
        middle, reach = self.tokenizer.encode(text[start:end]), CHARS_PER_TOKEN * self.length
        if len(middle) > MOST_SLOTS:
            return None
        before = self.tokenizer.encode(text[max(0, start - reach) : start])
        after = self.tokenizer.encode(text[end : end + reach])
        return canvas(before, middle, after, self.tokens, rng, self.length)
