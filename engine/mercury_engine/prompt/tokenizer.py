"""Tokenizer: text to tokens and back, and the cut of the text before a cursor.

The canvas begins at a token boundary before the word under the cursor, so that caches hold only tokens that further
typing cannot change ("token healing"). The first slots then spell the text that was cut off.
"""

import itertools
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray

from mercury_engine.lru import LeastRecentlyUsed
from mercury_engine.models.gguf.file import gguf_of, opened
from mercury_engine.prompt import tokenizer_file
from mercury_engine.prompt.edit_families import FAMILIES
from mercury_engine.prompt.gap_format import MARKER_TEXTS, find_markers
from mercury_engine.text.common_prefix import common_text_prefix

TokenArray = NDArray[np.int32]

Span = tuple[int, int]
"""Where a part of a text begins and ends."""

LONGEST_WORD = 64
"""Characters of a near prefix's word; longer words, finished or not, are cut into pieces of this length."""

REMEMBERED_BLOCKS = 4096
"""Number of context blocks whose tokens are remembered."""

REMEMBERED_LOOKUP_BLOCKS = 16_384
"""Number of lookup blocks whose tokens are remembered; up to 16 MB."""

REMEMBERED_TEXTS = 64
"""Token sequences whose text is remembered; a fill decodes some ten of them, up to five times each."""

LONGEST_TOKEN = 64
"""Characters of the longest token that is looked up by its text."""

OVERLAP = 4
"""Words before a change that are cut again: where a word ends depends on one or two characters after it."""

RELEASED_PER_CHARACTER = 2
"""Tokens that may enter the cached prefix per typed character."""


_PRINTABLE = (*range(33, 127), *range(161, 173), *range(174, 256))
_BYTES = {chr(byte): byte for byte in _PRINTABLE} | {
    chr(256 + number): byte for number, byte in enumerate(each for each in range(256) if each not in _PRINTABLE)
}
"""The byte that a character stands for in a byte-level vocabulary: a printable one for itself."""


class BlockTokens(tuple[int, ...]):
    """Tokens of a block, hashed once: every key looks up contexts by blocks with thousands of tokens."""

    _hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = super().__hash__()
        return self._hash


@dataclass(frozen=True, slots=True)
class PrefixCut:
    """A near prefix in three parts: tokens to read, known tokens that begin the canvas, text to spell."""

    read: list[int]
    known: list[int]
    spell: str


class Tokenizer:
    """The tokenizer of a model: a folder with tokenizer.json, or a GGUF file."""

    def __init__(self, folder: Path) -> None:
        """Raises ModelNotFound and ModelCorrupt, and ModelError for a GGUF vocabulary of an unknown kind."""
        gguf = gguf_of(folder)
        file = None if gguf is None else opened(gguf)
        read = tokenizer_file.read(folder / "tokenizer.json") if file is None else tokenizer_file.tokenizer_of(file)
        self.bpe = tokenizer_file.built(lambda: _with_special_markers(read), folder)
        self.bpe.encode_special_tokens = True  # text that spells a marker stays text
        self.markers = find_markers(self.bpe.token_to_id)
        """The markers of a gap format; None if the vocabulary has none."""
        self.special_ids = {i for i, token in self.bpe.get_added_tokens_decoder().items() if token.special}
        if self.markers is not None:
            self.special_ids |= self.markers.ids
        self.size = 1 + max(self.bpe.get_vocab().values(), default=-1)
        """Numbers of tokens, those that no token has included."""
        start = self.bpe.token_to_id("<|endoftext|>")
        otherwise = 0 if file is None else file.value("tokenizer.ggml.bos_token_id", 0, int)
        self.start_id = otherwise if start is None else start
        self._latest_spans: tuple[str, list[Span]] = ("", [])
        self._encoded: dict[str, tuple[int, ...]] = {}
        self._decoded = LeastRecentlyUsed[tuple[int, ...], str](REMEMBERED_TEXTS)
        self._blocks = LeastRecentlyUsed[str, BlockTokens](REMEMBERED_BLOCKS)
        self._lookup_blocks = LeastRecentlyUsed[str, TokenArray](REMEMBERED_LOOKUP_BLOCKS)

    def encode(self, text: str) -> list[int]:
        """Tokens of the text, never special ones; a lone surrogate becomes the replacement character."""
        return self.bpe.encode(_clean(text), add_special_tokens=False).ids

    def encode_marked(self, text: str, guard: str = "") -> list[int]:
        """Tokens of a text in which names of special tokens are these tokens.

        `guard`: a character that keeps a name from being one where it stands inside, and is left out.
        """
        ids = list[int]()
        for number, piece in enumerate(self.special_names.split(text)):
            ids += self.token(piece) if number % 2 else self.encode(piece.replace(guard, "") if guard else piece)
        return ids

    def encode_prompt(self, text: str, markers: Sequence[str]) -> list[int]:
        """Tokens of a text in which those of these markers are tokens that the vocabulary has; no other name is one."""
        longest_first = sorted(markers, key=len, reverse=True)
        known = [re.escape(each) for each in longest_first if self.bpe.token_to_id(each) is not None]
        pieces = re.split(f"({'|'.join(known)})", text) if known else [text]
        parts = (self.token(each) if number % 2 else self.block(each) for number, each in enumerate(pieces))
        return [token for part in parts for token in part]

    def token(self, marker: str) -> list[int]:
        """The marker's token; the tokens of its text if it is none."""
        number = self.bpe.token_to_id(marker)
        return self.encode(marker) if number is None else [number]

    def block(self, text: str) -> "BlockTokens":
        """Tokens of a context block, remembered: most blocks recur in many requests."""
        return self._blocks.get_or_make(text, lambda: BlockTokens(self.encode(text)))

    def lookup_block(self, text: str) -> TokenArray:
        """Tokens of a lookup block as an array, remembered."""
        return self._lookup_blocks.get_or_make(text, lambda: np.array(self.encode(text), np.int32))

    def has_lookup_block(self, text: str) -> bool:
        return text in self._lookup_blocks

    def decode(self, ids: list[int]) -> str:
        """The text of tokens, special ones included; remembered, as a fill asks for the same text several times."""
        return self._decoded.get_or_make(tuple(ids), lambda: self.bpe.decode(ids, skip_special_tokens=False))

    def piece(self, token: int) -> bytes:
        """The bytes of a token, which may be a part of a character's."""
        text = self.bpe.decode([token], skip_special_tokens=False)
        return text.encode() if token in self.special_ids else token_bytes(self.bpe.id_to_token(token) or "", text)

    @cached_property
    def texts(self) -> list[str]:
        """The text of each token; tokens that end inside a character hold the replacement character."""
        return [self.bpe.decode([i], skip_special_tokens=False) for i in range(self.size)]

    @cached_property
    def special_names(self) -> re.Pattern[str]:
        """Any special token's name, the longest first; in a group, so that splitting keeps it."""
        names = sorted(filter(None, map(self.bpe.id_to_token, self.special_ids)), key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, names))})" if names else "(?!)()")

    @cached_property
    def _sorted(self) -> tuple[list[str], list[int]]:
        """The texts of all tokens that have one, in order, and these tokens."""
        texts, tokens = zip(*sorted((text, token) for token, text in enumerate(self.texts) if text), strict=True)
        return list(texts), list(tokens)

    @cached_property
    def _by_text(self) -> dict[str, list[int]]:
        entries = itertools.groupby(zip(*self._sorted, strict=True), lambda entry: entry[0])
        return {text: [token for _, token in same] for text, same in entries}

    def beginning(self, text: str) -> list[int]:
        """Tokens that spell the beginning of a text."""
        starts = (text[:n] for n in range(1, min(LONGEST_TOKEN, len(text)) + 1))
        return [token for start in starts for token in self._by_text.get(start, ())]

    def spelling(self, text: str) -> list[int]:
        """Tokens that spell the beginning of a text, or all of it and more after it."""
        return [*self.beginning(text[:-1]), *self.starting(text)]

    def starting(self, text: str) -> list[int]:
        """Tokens that begin with a text."""
        texts, tokens = self._sorted
        first = bisect_left(texts, text)
        return tokens[first : bisect_right(texts, text, first, key=lambda each: each[: len(text)])]

    def cut(self, near: str) -> PrefixCut:
        """Cut a near prefix before its last, unfinished word.

        Words are those of the whole text, because the text after a word decides where it ends. A word of many tokens
        enters the cached prefix at RELEASED_PER_CHARACTER tokens per character typed after it, as a function of the
        text alone: one more character never adds more than RELEASED_PER_CHARACTER tokens.
        """
        text = _clean(near)
        words = self._words(text)
        last = "" if not words or words[-1].isdecimal() else words.pop()
        if last.isspace() and len(last) > 1:  # only its last character may join what follows
            words.append(last[:-1])
            last = last[-1]
        ids, released = self._released(words, len(text))
        begun, spell = self._spellable(last)
        return PrefixCut(ids[:released], [*ids[released:], *begun], spell)

    def _words(self, text: str) -> list[str]:
        """The pre-tokens of a text, which are tokenized one by one; long ones in pieces."""
        words = (text[start:end] for start, end in self._spans(text))
        return [word[at : at + LONGEST_WORD] for word in words for at in range(0, len(word), LONGEST_WORD)]

    def _spans(self, text: str) -> list[Span]:
        """Where the pre-tokens stand; those that the text shares with the latest one are not searched for again."""
        latest, known = self._latest_spans
        shared = common_text_prefix(latest, text, min(len(latest), len(text)))
        count = max(0, bisect_right(known, (shared,)) - 2 * OVERLAP)
        spans = self._spans_from(text, known[count][0] if count else 0)
        if count and spans[:OVERLAP] == known[count : count + OVERLAP]:
            spans = [*known[:count], *spans]
        elif count:  # a pre-tokenizer that treats the beginning of a text differently
            spans = self._spans_from(text, 0)
        self._latest_spans = text, spans
        return spans

    def _spans_from(self, text: str, first: int) -> list[Span]:
        """The pre-tokens from a position on."""
        before, rest = self.bpe.pre_tokenizer, text[first:]
        found = before.pre_tokenize_str(rest) if before else [(rest, (0, len(rest)))]
        return [(first + start, first + end) for _, (start, end) in found]

    def _released(self, words: list[str], typed: int) -> tuple[list[int], int]:
        """Tokens of the words, and how many are released with `typed` characters before the cursor.

        A token is ready once the character after its word is typed, and is released at least one character later than
        the token RELEASED_PER_CHARACTER before it.
        """
        ids: list[int] = []
        clock: list[int] = []
        end = 0
        for word in words:
            end += len(word)
            for token in self._encode_word(word):
                ids.append(token)
                clock.append(
                    max(end + 1, clock[-RELEASED_PER_CHARACTER] + 1 if len(clock) >= RELEASED_PER_CHARACTER else 0)
                )
        return ids, sum(time <= typed for time in clock)

    def _encode_word(self, word: str) -> tuple[int, ...]:
        if word not in self._encoded:
            if len(self._encoded) > 20_000:
                self._encoded.clear()
            self._encoded[word] = tuple(self.bpe.encode(word, add_special_tokens=False).ids)
        return self._encoded[word]

    def _spellable(self, word: str) -> tuple[list[int], str]:
        """Tokens up to the last one that ends inside a character, which no text spells, and the text after it."""
        ids = list(self._encode_word(word))
        begun = max((i + 1 for i, token in enumerate(ids) if "\ufffd" in self.texts[token]), default=0)
        return (ids[:begun], self.decode(ids[begun:])) if begun else ([], word)


def token_bytes(name: str, text: str) -> bytes:
    """A token's bytes, perhaps of a part of a character: of its name in a byte-level vocabulary, else of its text."""
    try:
        return bytes(_BYTES[character] for character in name)
    except KeyError:
        return text.encode()


def _with_special_markers(bpe: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """The tokenizer with all markers of gap and edit formats among its special tokens; some leave them out."""
    plain = {token.content for token in bpe.get_added_tokens_decoder().values() if not token.special}
    markers = MARKER_TEXTS.union(*(each.markers for each in FAMILIES if not each.is_chat))
    if plain.isdisjoint(markers):
        return bpe
    raw = json.loads(bpe.to_str())
    for token in raw["added_tokens"]:
        token["special"] |= token["content"] in markers
    return tokenizers.Tokenizer.from_str(json.dumps(raw))


def _clean(text: str) -> str:
    """The text with the replacement character in place of lone surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
