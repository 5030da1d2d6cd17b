"""Turn a moment of a commit into an example of the next rewrite."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice

from mercury_engine.api import MAX_REGION_CHARS, EditHunk
from mercury_engine.text.lines import lines_of

from mercury_lab.training.commits.moments import WORD, Document, Moment, OpenStep

LineSpan = tuple[int, int]

REGION_CHARS = 600
"""Most characters of a region."""

CENTRED_SHARE = 0.5
"""Share of windows with the change in their middle, as when the place was ranked exactly."""

MAX_QUIET_ATTEMPTS = 8
"""Places tried for a region that does not change."""


@dataclass(frozen=True, slots=True)
class EditExample:
    """A document in the middle of an edit, and the next rewrite of one of its regions.

    `region` is a span of the text, whole lines with their last line break; `rewritten` equals its text if nothing
    should change.
    """

    path: str
    language: str
    text: str
    history: tuple[EditHunk, ...]
    region: tuple[int, int]
    rewritten: str

    @property
    def region_text(self) -> str:
        return self.text[slice(*self.region)]

    @property
    def is_quiet(self) -> bool:
        """Whether the region does not change."""
        return self.rewritten == self.region_text


Fits = Callable[[EditExample], bool]


def edit_example(
    moment: Moment, rng: random.Random, fits: Fits, window: int = 0, around: LineSpan | None = None
) -> EditExample | None:
    """The next step's region rewritten, or in a quiet moment a region that stays; None if nothing fits.

    If a step is partly typed, the region is the line being typed, which becomes all that is left of the step. `window`:
    the region has so many lines, with the change anywhere in it; 0 for the change's lines and a few more. `around`:
    lines above and below the last change, whose region is rewritten instead, or stays if nothing is left there.
    """
    found: Iterator[EditExample | None]
    if around is not None:
        if moment.typed or not moment.made:
            return None
        stage = _Stage(moment, moment.made[-1].file)
        found = (stage.around_change(*size) for size in (around, (around[0] // 2, around[1] // 2)))
    elif moment.typed:
        rest = moment.open[0]
        found = iter([_Stage(moment, rest.document).example((rest.start, rest.end), rest.text, None)])
    else:
        found = _chosen(_Stage(moment, moment.document), moment.is_quiet, rng, window)
    return next((each for each in found if each and fits(each)), None)


def _chosen(stage: "_Stage", is_quiet: bool, rng: random.Random, window: int) -> Iterator[EditExample | None]:
    """Examples with some lines around the change, then with fewer."""
    if window:
        above, below = (window // 2, window // 2) if is_quiet else _margins(window - stage.height, rng)
    else:
        above, below = rng.choice((0, 0, 1, 2)), rng.choice((0, 0, 1, 2))
    places = [*islice(stage.quiet_places(rng), MAX_QUIET_ATTEMPTS)] if is_quiet else [-1]
    for at in places:
        for size in dict.fromkeys(((above, below), (min(above, 1), min(below, 1)), (0, 0))):
            yield stage.quiet(at, *size) if is_quiet else stage.next_edit(*size)


def _margins(left: int, rng: random.Random) -> LineSpan:
    """Lines above and below a change that leaves `left` lines of a window."""
    left = max(0, left)
    above = left // 2 if rng.random() < CENTRED_SHARE else rng.randint(0, left)
    return above, left - above


@dataclass(frozen=True)
class _Stage:
    """One document at a moment; places are numbers of its present lines."""

    moment: Moment
    number: int

    @cached_property
    def document(self) -> Document:
        return self.moment.documents[self.number]

    @cached_property
    def open(self) -> list[OpenStep]:
        """The steps left in the document, the next one first."""
        return [step for step in self.moment.open if step.document == self.number]

    @cached_property
    def made(self) -> list[LineSpan]:
        """The present lines of the steps made, in order."""
        starts = ((self.moment.moved(step), step) for step in self.moment.made if step.file == self.number)
        return [(start, start + len(lines_of(step.text))) for start, step in starts]

    @property
    def height(self) -> int:
        """Lines that the next step replaces."""
        return self.open[0].end - self.open[0].start

    def next_edit(self, above: int, below: int) -> EditExample | None:
        """The next step's lines with some around, rewritten; None if they cut another step."""
        first, last = self.open[0].start, self.open[0].end
        if first == last and not above and not below:
            above, below = (0, 1) if last < len(self.document.lines) else (1, 0)
        return self._rewritten(self._around(first, last, above, below), REGION_CHARS, self.open[0])

    def quiet(self, at: int, above: int, below: int) -> EditExample | None:
        """A line with some around, unchanged; nothing is left to do."""
        region = self._around(at, at + 1, above, below)
        return self.example(region, "".join(self.document.lines[slice(*region)])) if region[0] < region[1] else None

    def around_change(self, above: int, below: int) -> EditExample | None:
        """The last changed line with some around, as the server cuts a region around the cursor: with what is open
        there made, or unchanged. None if a step is only partly there."""
        first, last = self.made[-1]
        at = max(first, last - 1)
        region = self._around(at, at + 1, above, below)
        return self._rewritten(region, MAX_REGION_CHARS) if region[0] < region[1] else None

    def quiet_places(self, rng: random.Random) -> Iterator[int]:
        """Lines where an edit could be expected but is not: at steps made, at the same words, anywhere."""
        starts, size = self.document.starts, len(self.document.text)
        while True:
            kind = rng.random()
            if kind < 0.4 and self.made:
                start, end = (starts[line] for line in rng.choice(self.made))
                yield self.document.line_of(min(rng.randrange(start, max(start + 1, end)), size - 1))
            elif kind < 0.75 and self._mentions:
                yield self.document.line_of(rng.choice(self._mentions))
            else:
                yield self.document.line_of(rng.randrange(size))

    @cached_property
    def _mentions(self) -> list[int]:
        """Offsets of words that were removed from the document or inserted."""
        own = (each for each in self.history if each.path is None)
        changed = (word for each in own for word in {*WORD.findall(each.removed)} ^ {*WORD.findall(each.inserted)})
        words = sorted({word for word in changed if len(word) > 2})[:12]
        found = re.finditer(rf"\b(?:{'|'.join(map(re.escape, words))})\b", self.document.text) if words else ()
        return [match.start() for match in found][:200]

    @cached_property
    def history(self) -> tuple[EditHunk, ...]:
        """All steps made, oldest first; those of the document have their places in it then, others their paths."""
        hunks, own = list[EditHunk](), list[tuple[int, int]]()
        for step in self.moment.made:
            file = self.moment.edit.files[step.file]
            lines = lines_of(file.text)
            removed = "".join(lines[step.start : step.end])
            if step.file != self.number:
                hunks.append(EditHunk(0, removed, step.text, file.path))
                continue
            start = list(accumulate(map(len, lines), initial=0))[step.start]
            hunks.append(EditHunk(start + sum(grown for end, grown in own if end <= step.start), removed, step.text))
            own.append((step.end, len(step.text) - len(removed)))
        return tuple(hunks)

    def _around(self, first: int, last: int, above: int, below: int) -> LineSpan:
        return max(0, first - above), min(len(self.document.lines), last + below)

    def _rewritten(self, region: LineSpan, most: int, target: OpenStep | None = None) -> EditExample | None:
        """The region after the steps in it; None if another one is only partly there."""
        start, end = region
        inside = [s for s in self.open if s is target or (start <= s.start and s.end <= end and s.start < end)]
        if any(s.start < end and start < s.end for s in self.open if s not in inside):
            return None
        lines, text, at = self.document.lines, list[str](), start
        for step in sorted(inside, key=lambda step: (step.start, step.end)):
            text += (*lines[at : step.start], step.text)
            at = step.end
        return self.example(region, "".join((*text, *lines[at:end])), most)

    def example(self, region: LineSpan, rewritten: str, most: int | None = REGION_CHARS) -> EditExample | None:
        start, end = (self.document.starts[line] for line in region)
        if most is not None and max(end - start, len(rewritten)) > most:
            return None
        file = self.moment.edit.files[self.number]
        return EditExample(file.path, file.language, self.document.text, self.history, (start, end), rewritten)
