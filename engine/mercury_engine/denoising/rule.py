"""The denoising rule: who decides, where drafts come from, and how the two opinions are weighed."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from mercury_engine.api import MAX_SLOTS


@dataclass(frozen=True, slots=True)
class DenoisingRule:
    """How much is done per step and how opinions are weighed; the weights are fitted on held-out text.

    Raises ValueError for unknown words, for a share outside [0, 1] and for other numbers that are out of range.
    """

    decides: Literal["reader", "writer"] = "reader"
    """Who decides: the reader settles slots from the left, in a mixture with the writer, or the writer decides alone.

    Alone it commits slots in any order by `bound` or `threshold`. That needs neither the reader nor the host, so on a
    GPU such fills stay on the device. The weights, `drafts`, `recall`, `lookahead` and `window` then have no effect.
    """
    drafts: Literal["writer", "context", "none"] = "writer"
    """Where drafts come from. The writer drafts in any case when steps are shown to a caller or limited.

    "context" is n-gram lookup: it needs no forward pass, so it is faster unless the writer drafts at least two tokens
    right. "none" decodes left to right, for comparison.
    """
    bound: float = 0.1
    """Entropy, in nats, that the drafts kept on the canvas may have together."""
    next_weight: float = 0.5
    """Writer's share in the log-linear mixture for the leftmost open slot."""
    later_weight: float = 0.15
    """Writer's share for slots behind a draft, which it has not seen and the reader has."""
    end_weight: float = 0.5
    """Writer's share in the odds of the end marker."""
    recall: float = 0.06
    """Share of the n-gram's opinion, per matching token beyond the first.

    Fitted for the bundled reader; a better reader needs less.
    """
    lookahead: int = 8
    """Largest number of draft tokens that the reader verifies per step."""
    window: int = 16
    """Number of open slots that the writer sees; a short canvas is cheap, and most gaps are short."""
    threshold: float | None = None
    """Lowest probability of a draft that stays on the canvas; replaces the entropy bound."""

    def __post_init__(self) -> None:
        for name, known in (("decides", ("reader", "writer")), ("drafts", ("writer", "context", "none"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}; known are {', '.join(known)}")
        for name in ("recall", "next_weight", "later_weight", "end_weight"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be from 0 to 1")
        if not 0 <= self.bound < inf or not (self.threshold is None or 0 <= self.threshold <= 1):
            raise ValueError(f"bound is {self.bound} and threshold {self.threshold}; they are nats and a probability")
        for name in ("lookahead", "window"):
            if type(getattr(self, name)) is not int or not 1 <= getattr(self, name) <= MAX_SLOTS:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be an integer from 1 to {MAX_SLOTS}")
