"""A few denoising steps of one canvas that a GPU makes without the host, several canvases at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mercury_engine.models.network import KeyValueSegment

UNLIMITED_STEPS = 1 << 20
"""More steps than any canvas needs."""


@dataclass(frozen=True, slots=True)
class CanvasChunk:
    """One canvas: its slots after the token `last`, which has position `ends`, between two sides."""

    denoiser: "ChunkDenoiser"
    last: int
    ids: Sequence[int]
    ends: int
    before: Sequence[KeyValueSegment]
    after: Sequence[KeyValueSegment]
    bound: float = 0.1
    """Entropy, in nats, that the slots unmasked in one step may add up to."""
    most: int = UNLIMITED_STEPS
    """Maximum number of steps; the last one unmasks every open slot."""
    mask: int = 0
    """Number of a mask of the denoiser's `token_masks`."""
    first_mask: int | None = None
    """Number of another mask for the first slot that is open or a draft."""
    drafts: Sequence[int] = ()
    """Slots whose tokens the first step verifies: those the model would choose stay, the others are masked."""

    @property
    def rows(self) -> int:
        return len(self.ids) + 1


@dataclass(frozen=True, slots=True)
class FilledCanvas:
    """The slots of a canvas, the probability of each when it was unmasked, and the number of steps.

    The probability is 1 for given slots and slots after an end, and 0 for drafts that no step has verified.
    """

    ids: list[int]
    probabilities: list[float]
    steps: int
    done: bool


class ChunkDenoiser(Protocol):
    """Denoises canvases of several requests together."""

    def run_chunk(self, chunks: Sequence[CanvasChunk]) -> list[FilledCanvas]:
        """The canvases after a few steps."""
