"""Which snippets of other files a request shows: of each kind the one most like the text around the cursor.

Likeness is measured as it was where snippets were chosen in training (mercury_engine/training/examples/snippets.py).
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from mercury_engine.prompt.chunking import split
from mercury_engine.prompt.layout import path_line

from mercury_lsp.documents.languages import language

KEPT_WORTH_SHARE = 0.7
"""A snippet stays while its worth is at least this share of what the best one is worth."""

_WORD = re.compile(r"[^\W\d]\w{3,}")


class SnippetKind(StrEnum):
    """What a snippet is made of; a request shows one of each."""

    DECLARATIONS = "declarations"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A block of another file, of about `MAX_CHARS` of the chunks at most."""

    kind: SnippetKind
    text: str
    """A comment with the path, then lines."""
    words: frozenset[str]

    @classmethod
    def of(cls, kind: SnippetKind, path: str, language_id: str, lines: str) -> "Snippet":
        """Lines of the file at a path, as the reader saw such blocks in training."""
        return cls(kind, language(language_id).comment_line(path_line(path)) + lines, words_of(lines))


def snippets_of(kind: SnippetKind, path: str, language_id: str, text: str) -> list[Snippet]:
    """A text of the file at a path, in blocks."""
    return [Snippet.of(kind, path, language_id, chunk) for chunk in split(text)]


def words_of(text: str) -> frozenset[str]:
    """Words of four letters and more."""
    return frozenset(_WORD.findall(text))


def likeliest(candidates: Sequence[Snippet], around: frozenset[str], most: int) -> list[Snippet]:
    """The best of many, best first; none without a word of the surroundings."""
    worth = _worth(candidates, around)
    order = sorted(range(len(candidates)), key=lambda number: -worth[number])
    return [candidates[number] for number in order[:most] if worth[number]]


def choose(
    candidates: Sequence[Snippet], around: frozenset[str], kept: tuple[Snippet, ...] = ()
) -> tuple[Snippet, ...]:
    """The best snippet of each kind; `kept`, those shown so far, stay unless others are much better."""
    found = []
    for kind in SnippetKind:
        alike = [each for each in candidates if each.kind is kind]
        shown = next((each for each in kept if each.kind is kind), None)
        if (best := _best(alike, around, shown)) is not None:
            found.append(best)
    return tuple(found)


def _best(candidates: Sequence[Snippet], around: frozenset[str], kept: Snippet | None) -> Snippet | None:
    worth = dict(zip(candidates, _worth(candidates, around), strict=True))
    best = max(worth, key=lambda each: worth[each], default=None)
    if best is None or not worth[best]:
        return None
    return kept if kept is not None and worth.get(kept, 0.0) >= KEPT_WORTH_SHARE * worth[best] else best


def _worth(candidates: Sequence[Snippet], around: frozenset[str]) -> list[float]:
    """How many words each has in common with the surroundings; a word counts for less the more candidates hold it."""
    common = [candidate.words & around for candidate in candidates]
    holders = Counter(chain.from_iterable(common))
    return [math.fsum(1 / holders[word] for word in words) for words in common]
