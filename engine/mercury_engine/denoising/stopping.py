"""Where a fill ends, for the reader: it knows no end marker, so the end is that what follows the gap comes next."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mercury_engine.prompt.tokenizer import LONGEST_TOKEN, Tokenizer
from mercury_engine.text.brackets import has_open_bracket, outside_strings

END_MARKS = ")]};,:\"'`"
"""Characters that end a gap in whatever token they begin: behind `)` a reader may want `);`."""

AFTER_BRACKETS = ")]};,:"
"""Of these, those that belong to the fill while it has a bracket open."""


@dataclass(frozen=True, slots=True)
class StopTokens:
    """Tokens that say that the gap is over."""

    tokens: Tensor
    is_certain: bool
    """They can be nothing but the end, so none of them is content."""


class StoppingCriteria:
    """The endings of one vocabulary; remembers the last one."""

    def __init__(self, tokenizer: Tokenizer, texts: list[str]) -> None:
        self._tokenizer = tokenizer
        self.breaks = _tensor([i for i, text in enumerate(texts) if "\n" in text])
        self.ends_text = _tensor([i for i, text in enumerate(texts) if not text or text.startswith("<|")])
        self._last: tuple[tuple[str, bool], StopTokens] | None = None

    def at(self, follows: str, multiline: bool, written: str) -> StopTokens | None:
        """The ending before a text that follows the gap, behind what was written into it; None where it cannot end."""
        if follows[:1] and follows[0] in AFTER_BRACKETS and has_open_bracket(written):
            return None
        key = (follows[:LONGEST_TOKEN], multiline)
        if self._last is None or self._last[0] != key:
            self._last = key, self._found(follows, multiline)
        return self._last[1]

    def _found(self, follows: str, multiline: bool) -> StopTokens:
        if multiline and follows.startswith(("\n", "\r")):  # or the fill goes on in another line
            return StopTokens(_tensor(self._tokenizer.beginning(follows)), is_certain=False)
        if not follows.strip() or follows.startswith(("\n", "\r")):
            return StopTokens(torch.cat((self.breaks, self.ends_text)), is_certain=False)
        begin = self._tokenizer.spelling(follows[0]) if follows[0] in END_MARKS else self._tokenizer.beginning(follows)
        tokens = _tensor(begin)
        return StopTokens(tokens if multiline else torch.cat((tokens, self.breaks)).unique(), is_certain=True)


def find_end(text: str, follows: str) -> int | None:
    """Where a text goes on with what stands behind the gap; None if it does not.

    A token may hold both, as `")` does. What goes on is a bracket that the text did not open, or a mark outside all
    brackets and strings.
    """
    if not follows or follows[0] not in AFTER_BRACKETS:
        return None
    before = 0
    for at, character, depth in outside_strings(text):
        if character == follows[0] and not before and depth <= 0:
            return at
        before = max(0, depth)
    return None


def _tensor(ids: list[int]) -> Tensor:
    return torch.tensor(ids, dtype=torch.long)
