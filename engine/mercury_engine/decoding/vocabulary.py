"""The tokens that a decoder chooses from."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens: their texts ("" for a token without text), the mask and the end marker."""

    texts: list[str]
    mask_id: int
    end_id: int

    def spelled(self, ids: Sequence[int]) -> str:
        """The tokens' texts, joined."""
        return "".join(self.texts[i] for i in ids)
