"""How much lines, and the regions around them, have in common with the changes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mercury_engine.places.candidates import TOLERANCE_LINES, Candidate
from mercury_engine.places.line_looks import seen
from mercury_engine.places.situation import Situation

Array = npt.NDArray[np.float32]

MAX_COMPARED_LINES = 60
"""Lines of the changes that candidates are compared with."""

MAX_REGION_LINES = 40
"""Lines of a change whose parts of words are looked for in regions."""

EARLIER_CHANGES = 3

REGION_FEATURES = ("region_changed", "region_around", "region_earlier")
"""Shares of the parts of words of the last change's lines, of the lines around it and of the changes before it that a
region has, rare parts counting more."""


class LikeLines:
    """The greatest likeness of a line to one of the last change's lines, and to one of all: words in common of both."""

    def __init__(self, last: Sequence[str], lines: Sequence[str]) -> None:
        of_last, of_any = (
            {words for line in each[:MAX_COMPARED_LINES] if len(words := seen(line).words) > 1}
            for each in (last, lines)
        )
        self.sizes: list[int] = []
        self.in_last: list[bool] = []
        self.in_any: list[bool] = []
        self.with_word: dict[str, list[int]] = {}
        for words in of_last | of_any:
            for word in words:
                self.with_word.setdefault(word, []).append(len(self.sizes))
            self.sizes.append(len(words))
            self.in_last.append(words in of_last)
            self.in_any.append(words in of_any)

    def __call__(self, words: frozenset[str]) -> tuple[float, float]:
        common: dict[int, int] = {}
        for word in self.with_word.keys() & words:
            for number in self.with_word[word]:
                common[number] = common.get(number, 0) + 1
        best_of_last = best_of_any = 0.0
        for number, same in common.items():
            likeness = same / (len(words) + self.sizes[number] - same)
            if likeness > best_of_last and self.in_last[number]:
                best_of_last = likeness
            if likeness > best_of_any and self.in_any[number]:
                best_of_any = likeness
        return best_of_last, best_of_any


def lines_near(situation: Situation, places: Sequence[Candidate]) -> list[dict[int, str]]:
    """By document, the lines within reach of candidates, which are in order; each line is read once."""
    found: list[dict[int, str]] = [{} for _ in situation.documents]
    ends = [0] * len(found)
    for place in places:
        document = situation.documents[place.document]
        first = max(ends[place.document], place.line - TOLERANCE_LINES)
        end = min(len(document.lines), place.line + TOLERANCE_LINES + 1)
        if first < end:
            found[place.document].update(zip(range(first, end), document.lines[first:end], strict=True))
            ends[place.document] = end
    return found


def region_shares(situation: Situation, places: Sequence[Candidate], near: Sequence[dict[int, str]]) -> Array:
    """The values of REGION_FEATURES of the lines within reach of each candidate; [C, 3].

    The last change and what is around it are in no region; rare means in few of the candidates' regions.
    """
    last = situation.changes[-1]
    document = situation.documents[last.document]
    top, bottom = max(0, last.start - TOLERANCE_LINES), min(len(document.lines), last.end + TOLERANCE_LINES)
    around = [*document.lines[top : last.start], *document.lines[last.end : bottom]]
    before = situation.changes[-1 - EARLIER_CHANGES : -1]
    earlier = [line for change in before for line in (*change.removed, *change.inserted)]
    groups = [
        frozenset[str]().union(*(seen(line).parts for line in lines[:MAX_REGION_LINES]))
        for lines in ((*last.removed, *last.inserted), around, earlier)
    ]
    numbers = {part: number for number, part in enumerate(sorted(frozenset().union(*groups)))}
    parts = [{line: _numbers_of(text, numbers) for line, text in lines.items()} for lines in near]
    for line in range(top, bottom):
        parts[last.document].pop(line, None)
    has_CP = _parts_in_regions(places, parts, len(numbers))
    rarity_P = np.log((len(places) + 1) / (has_CP.sum(0) + np.float32(0.5)))
    wanted_PG = np.array([[part in group for group in groups] for part in numbers], np.float32).reshape(-1, len(groups))
    weighed_PG = rarity_P[:, None] * wanted_PG
    return (has_CP @ weighed_PG / np.maximum(weighed_PG.sum(0), 1)).astype(np.float32)


def _numbers_of(line: str, numbers: dict[str, int]) -> list[int]:
    return [numbers[part] for part in seen(line).parts & numbers.keys()]


def _parts_in_regions(places: Sequence[Candidate], parts: Sequence[dict[int, list[int]]], count: int) -> Array:
    """Which parts of words, given by line and document, are within reach of each candidate; [C, P]."""
    rows, columns = list[int](), list[int]()
    for row, place in enumerate(places):
        of_document = parts[place.document]
        before = len(columns)
        for line in range(place.line - TOLERANCE_LINES, place.line + TOLERANCE_LINES + 1):
            if found := of_document.get(line):
                columns += found
        rows += [row] * (len(columns) - before)
    has_CP = np.zeros((len(places), count), np.float32)
    has_CP[rows, columns] = 1
    return has_CP
