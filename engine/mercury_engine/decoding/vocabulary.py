"""The tokens that a decoder chooses from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mercury_engine.api import PART_OF_A_CHARACTER


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens: their texts ("" for a token without text), the mask and the end marker."""

    texts: list[str]
    mask_id: int
    end_id: int
    decode: Callable[[list[int]], str] | None = None
    """Spells tokens that share the bytes of a character; None where no tokens do."""

    def spelled(self, ids: Sequence[int]) -> str:
        """The tokens' text; a character whose last bytes are missing is a replacement character."""
        text = "".join(self.texts[i] for i in ids)
        return self.decode([*ids]) if self.decode is not None and PART_OF_A_CHARACTER in text else text
