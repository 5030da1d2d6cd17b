"""What is known when the next place is asked for: open documents, the changes made so far, and the cursor.

Positions are lines, counted from 0, of the documents as they are now.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from mercury_engine.places.whole_document import WholeDocument

WORD = re.compile(r"[^\W\d]\w+")
"""Names and keywords of two characters or more."""


@dataclass(frozen=True)
class LineChange:
    """Lines [start, end) of a document stand where the removed lines stood."""

    document: int
    start: int
    removed: tuple[str, ...]
    inserted: tuple[str, ...]

    @cached_property
    def end(self) -> int:
        return self.start + len(self.inserted)

    @property
    def last(self) -> int:
        """Its last line; the first one after a deletion."""
        return max(self.start, self.end - 1)

    @cached_property
    def old_words(self) -> frozenset[str]:
        return frozenset(WORD.findall("".join(self.removed)))

    @cached_property
    def new_words(self) -> frozenset[str]:
        return frozenset(WORD.findall("".join(self.inserted)))


@dataclass(frozen=True)
class Situation:
    """The documents, the changes in the order in which they were made, and the cursor's document and line."""

    documents: tuple[WholeDocument, ...]
    changes: tuple[LineChange, ...]
    cursor: tuple[int, int]
