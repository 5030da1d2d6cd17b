"""Chooses the snippets of other files for a request: of each kind, the one most similar to the text around the cursor.

Similarity is measured as in training (mercury_lab/training/examples/snippets.py).
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

from mercury_lsp.documents.chunked_text import with_line_feeds
from mercury_lsp.documents.languages import language

KEPT_SCORE_SHARE = 0.7
"""A snippet stays while its score is at least this share of the best score."""

_LONG_WORD = re.compile(r"[^\W\d]\w{3,}")


class SnippetKind(StrEnum):
    """The content of a snippet; a request has at most one of each kind."""

    DECLARATIONS = "declarations"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A block of another file, about as long as a chunk."""

    kind: SnippetKind
    text: str
    """A comment with the path, then the lines."""
    words: frozenset[str]

    @classmethod
    def of(cls, kind: SnippetKind, path: str, language_id: str, lines: str) -> "Snippet":
        """Lines of the file at `path`, in the layout the reader saw in training."""
        return cls(kind, language(language_id).marks.line(path_line(path)) + with_line_feeds(lines), words_of(lines))


def snippets_of(kind: SnippetKind, path: str, language_id: str, text: str) -> list[Snippet]:
    """A text of the file at `path`, cut into snippets."""
    return [Snippet.of(kind, path, language_id, chunk) for chunk in split(text)]


def words_of(text: str) -> frozenset[str]:
    """The words of at least four letters."""
    return frozenset(_LONG_WORD.findall(text))


def most_similar(candidates: Sequence[Snippet], around: frozenset[str], most: int) -> list[Snippet]:
    """At most `most` snippets, best first; none without a word in common with the text around the cursor."""
    scores = _scores(candidates, around)
    order = sorted(range(len(candidates)), key=lambda number: -scores[number])
    return [candidates[number] for number in order[:most] if scores[number]]


def choose(
    candidates: Sequence[Snippet], around: frozenset[str], kept: tuple[Snippet, ...] = ()
) -> tuple[Snippet, ...]:
    """The best snippet of each kind; those in `kept`, chosen before, stay unless others are much better."""
    chosen = []
    for kind in SnippetKind:
        of_kind = [each for each in candidates if each.kind is kind]
        scores = dict(zip(of_kind, _scores(of_kind, around), strict=True))
        best = max(scores, key=scores.__getitem__, default=None)
        if best is not None and scores[best]:
            shown = next((each for each in kept if each.kind is kind), best)
            chosen.append(shown if scores.get(shown, 0.0) >= KEPT_SCORE_SHARE * scores[best] else best)
    return tuple(chosen)


def _scores(candidates: Sequence[Snippet], around: frozenset[str]) -> list[float]:
    """Words in common with the text around the cursor; a word counts less the more candidates contain it."""
    common = [candidate.words & around for candidate in candidates]
    holders = Counter(chain.from_iterable(common))
    return [math.fsum(1 / holders[word] for word in words) for words in common]
