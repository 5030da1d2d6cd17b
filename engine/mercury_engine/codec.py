"""Text to tokens and back, and where the text left of a cursor may be cut.

The canvas begins at a token boundary before the word under the cursor, so that the caches hold only tokens
that no further typing can change ("token healing"); the first slots then have to spell what was cut off.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer

from mercury_engine.errors import ModelCorrupt, ModelNotFound

_UNFINISHED = re.compile(r"(?: ?[^\W\d_]+| ?(?:[^\w\s]|_)+|\s)\Z")
"""The last pre-token of the byte-level split, which the next character may still extend."""

LONGEST_WORD = 64
"""Characters of one word that healing takes back at most; beyond it the word is cut."""

RELEASE = 2
"""Tokens per typed character that may enter the cached prefix."""

_TAIL = 16
"""Tokens before the cursor that may still wait for their release."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A near prefix in three parts: tokens to read, known tokens that open the canvas, text to spell."""

    read: list[int]
    known: list[int]
    spell: str


class Codec:
    """The tokenizer of a model folder."""

    def __init__(self, folder: Path) -> None:
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise ModelNotFound(f"no tokenizer.json in {folder}; fetch the model again")
        try:
            self.tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise ModelCorrupt(f"{path} cannot be read ({error}); fetch the model again") from error
        self.size = self.tokenizer.get_vocab_size()
        start = self.tokenizer.token_to_id("<|endoftext|>")
        self.start_id = 0 if start is None else start

    def encode(self, text: str) -> list[int]:
        """Tokens of the text, no special ones added; lone surrogates become the replacement character."""
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return self.tokenizer.encode(clean, add_special_tokens=False).ids

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=False)

    @cached_property
    def texts(self) -> list[str]:
        """What each token spells; tokens that end inside a character hold the replacement character."""
        return [self.tokenizer.decode([i], skip_special_tokens=False) for i in range(self.size)]

    def cut(self, near: str) -> Cut:
        """Cut a near prefix before its last, unfinished word.

        A word of many tokens is released into the cached prefix at RELEASE tokens per character typed after
        it, as a function of the text alone: one more character never adds more than RELEASE tokens.
        """
        unfinished = _UNFINISHED.search(near[-LONGEST_WORD:])
        end = len(near) - len(unfinished[0]) if unfinished else len(near)
        ids = self.encode(near[:end])
        known = self._unreleased(ids, near[:end], len(near))
        return Cut(ids[: len(ids) - known], ids[len(ids) - known :], near[end:])

    def _unreleased(self, ids: list[int], text: str, typed: int) -> int:
        """How many last tokens of text wait when `typed` characters stand before the cursor.

        A token is ready when the character behind its word is typed, and is released RELEASE places after
        another at least one character later.
        """
        tail = ids[-_TAIL:]
        words = self.tokenizer.encode(text[-4 * _TAIL :], add_special_tokens=False).word_ids[-len(tail) :]
        sizes = [len(self.tokenizer.id_to_token(i)) for i in tail]
        bytes_behind = [sum(sizes[i + 1 :]) for i in range(len(tail))]
        ends = dict(zip(words, bytes_behind, strict=False))  # the last token of a word wins
        clock: list[int] = []
        for i in range(len(tail)):
            behind = ends[words[i]] if i < len(words) else bytes_behind[i]
            ready = len(text) - _characters(text, behind) + 1
            clock.append(max(ready, clock[i - RELEASE] + 1 if i >= RELEASE else 0))
        return sum(time > typed for time in clock)


def _characters(text: str, size: int) -> int:
    """How many characters the last `size` bytes of text are (byte-level tokens count bytes)."""
    count = 0
    while size > 0 and count < len(text):
        count += 1
        size -= len(text[-count].encode("utf-8", "replace"))
    return count
