"""Finds how a line continues that matches the text before the cursor, compared token by token; blanks do not count."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mercury_engine.text.brackets import CLOSING, bracket_step, unclosed_brackets

from mercury_lsp.completion.drafting.renaming import Renaming, affects, are_same_kind

MIN_MATCH_CHARS = 4
"""Fewest common characters of a match, blanks not counted; one of the tokens must be a word."""

WORD_START_CHARS = (3, 4)
"""Characters of an unfinished word that are looked up: fewer with the token before it, more on its own."""

MAX_DRAFT_LINE_CHARS = 200
"""Longest line of a draft, in characters; of a longer line prefix only the end is compared."""

LINE_START = ""
"""The token that every line starts with."""

_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class LineTokens:
    """The tokens of a text (words and other single characters), with their start and end offsets in it."""

    texts: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """A line up to the cursor, in tokens."""

    tokens: tuple[str, ...]
    """The tokens before the unfinished word; the first is `LINE_START`, unless the line is too long."""
    word: str
    """The word that touches the cursor, or empty."""
    alone: str
    """The unfinished word if it suffices for a match, else a string that occurs in no line."""
    after_blank: bool
    unclosed: int
    """Number of brackets left open."""

    @classmethod
    def of(cls, text: str) -> "Prefix":
        """From the text of a line up to the cursor."""
        found = _TOKEN.findall(text[-MAX_DRAFT_LINE_CHARS:])
        word = found.pop() if found and is_word(text[-1]) else ""
        start = (LINE_START,) if len(text) <= MAX_DRAFT_LINE_CHARS else ()
        alone = word if len(word) >= MIN_MATCH_CHARS else "\n"
        return cls((*start, *found), word, alone, text[-1:].isspace(), unclosed_brackets(text[-MAX_DRAFT_LINE_CHARS:]))

    def may_match(self, line: str) -> bool:
        """Whether a line contains the end of the prefix."""
        return bool(self.tokens) and (self.tokens[-1] in line or self.alone in line)

    def possible_ends(self, texts: Sequence[str]) -> list[int]:
        """Indices of the tokens of a line before which the prefix may end."""
        last, word = self.tokens[-1], self.alone
        return [end for end in range(1, len(texts)) if texts[end - 1] == last or texts[end].startswith(word)]

    def keys(self) -> list[int]:
        """The index keys (see `keys`) of lines that may match, closest first."""
        starts = [self.word[:size] for size in WORD_START_CHARS if len(self.word) >= size] or [""]
        found = (_key(self.tokens, len(self.tokens), start) for start in starts)
        return [key for key in found if key is not None]


@dataclass(frozen=True, slots=True)
class Match:
    """A line's continuation after the part it has in common with a prefix."""

    rest: str
    reach: int
    """Characters in common, including renamed words; the start of the line counts as one."""


def is_word(token: str) -> bool:
    """Whether a token is a word and not punctuation."""
    return token[:1].isalnum() or token[:1] == "_"


@lru_cache(4096)  # the lines around some sixteen cursors
def line_tokens(text: str) -> LineTokens:
    """The tokens of a line, `LINE_START` first."""
    found = tokens(text)
    return LineTokens((LINE_START, *found.texts), (0, *found.starts), (0, *found.ends))


def tokens(text: str) -> LineTokens:
    """The tokens of a text."""
    found = list(_TOKEN.finditer(text))
    starts, ends = (tuple(map(of, found)) for of in (re.Match.start, re.Match.end))
    return LineTokens(tuple(each[0] for each in found), starts, ends)


def keys(text: str) -> set[int]:
    """The index keys of a line: one for every position where a prefix may end."""
    texts = (LINE_START, *_TOKEN.findall(text))
    found = {_key(texts, end) for end in range(2, len(texts))}
    for size in WORD_START_CHARS:
        found |= {_key(texts, end, texts[end][:size]) for end in range(1, len(texts)) if len(texts[end]) >= size}
    return {key for key in found if key is not None}


def match(prefix: Prefix, line: str, least: int = 0, names: tuple[str, str] | None = None) -> Match | None:
    """The longest match within the line that leaves a continuation; None if its reach is below `least`.

    `names`: a line near the line and one near the prefix, from which renamings may be learned too.
    """
    if len(line) > MAX_DRAFT_LINE_CHARS or not prefix.may_match(line):
        return None
    found = line_tokens(line)
    carried = (renaming_between(*names) if names else None) or Renaming()
    matches = [_match_at(prefix, found, end, line, carried, least) for end in prefix.possible_ends(found.texts)]
    return max((each for each in matches if each is not None), key=lambda each: each.reach, default=None)


@lru_cache(2048)
def renaming_between(theirs: str, ours: str) -> Renaming | None:
    """The renaming that turns one line into another; None if they differ in more than names."""
    if max(len(theirs), len(ours)) > MAX_DRAFT_LINE_CHARS:
        return None
    one, other = line_tokens(theirs).texts, line_tokens(ours).texts
    common = [text for text, another in zip(one, other, strict=False) if text == another]
    if len(one) != len(other) or sum(map(len, common)) < MIN_MATCH_CHARS or not any(map(is_word, common)):
        return None
    renaming = Renaming()
    fits = all(
        (old == new or are_same_kind(old, new)) and renaming.learn(old, new)
        for old, new in zip(one, other, strict=True)
    )
    return renaming if fits else None


def before_suffix(rest: str, line_suffix: str) -> str:
    """The part of a continuation that fits before the line's suffix; empty if none does.

    The suffix must occur in the continuation outside of brackets, or close the same bracket.
    """
    suffix, depth = line_suffix.strip(), 0
    if not suffix:
        return rest
    wanted = suffix[0] if suffix[0] in CLOSING else suffix
    for index, character in enumerate(rest):
        if depth == 0 and rest.startswith(wanted, index):
            return rest[:index].rstrip() if line_suffix[0].isspace() else rest[:index]
        depth += bracket_step(character)
        if depth < 0:
            break
    return ""


def _key(texts: Sequence[str], end: int, word: str = "") -> int | None:
    """The key of the fewest tokens before `end` that, with the start of a word after them, suffice for a match."""
    chars, has_word, start = len(word), bool(word), end
    while (chars < MIN_MATCH_CHARS or not has_word) and start:
        start -= 1
        chars += len(texts[start])
        has_word = has_word or is_word(texts[start])
    is_first_word = bool(word) and end == 1 and texts[0] == LINE_START
    if is_first_word or (chars >= MIN_MATCH_CHARS and has_word):
        return hash((*texts[start:end], word, bool(word)))
    return None


def _match_at(prefix: Prefix, found: LineTokens, end: int, line: str, carried: Renaming, least: int) -> Match | None:
    touches = not prefix.word and not prefix.after_blank and end > 1
    rest = line[found.ends[end - 1] if touches else found.starts[end] :]
    renaming, reach, equal, has_word = Renaming(), len(prefix.word), len(prefix.word), bool(prefix.word)
    for ours, theirs in zip(reversed(prefix.tokens), reversed(found.texts[:end]), strict=False):
        if not (ours == theirs or _is_explained(ours, theirs, rest, carried)) or not renaming.learn(theirs, ours):
            break
        reach += len(ours) or 1
        equal += len(ours) * (ours == theirs)
        has_word = has_word or (ours == theirs and is_word(ours))
    if equal < MIN_MATCH_CHARS or not has_word or reach < least:
        return None
    renaming.adopt(carried)
    rest = renaming.apply(_balanced(rest, unclosed_brackets(line[: found.ends[end - 1]]), prefix.unclosed))
    if not rest.startswith(prefix.word) or rest == prefix.word:
        return None
    return Match(rest[len(prefix.word) :], reach)


def _is_explained(ours: str, theirs: str, rest: str, carried: Renaming) -> bool:
    """Whether a differing word is a known renaming, or the rest of the line uses it."""
    return are_same_kind(ours, theirs) and (carried.apply(theirs) == ours or affects(theirs, ours, rest))


def _balanced(rest: str, theirs: int, ours: int) -> str:
    """The rest of a line without surplus closing brackets, if its start left more open than our prefix does.

    A rest that closes brackets of earlier lines is left as it is.
    """
    if theirs <= ours:
        return rest
    depth, surplus = 0, None
    for index, character in enumerate(rest):
        depth += bracket_step(character)
        if depth < -ours and surplus is None:
            surplus = index
        if depth < -theirs:
            return rest
    return rest[:surplus]
