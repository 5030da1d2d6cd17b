"""A partly made edit: the steps done are the edit history, the others are open."""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from mercury_engine.api import MAX_REGION_CHARS, EditHunk

TextSpan = tuple[int, int]

REGION_CHARS = 600
"""Most characters of a region."""

CENTRED_SHARE = 0.5
"""Share of windows with the change in their middle, as when the place was ranked exactly."""

MAX_QUIET_ATTEMPTS = 8
"""Places tried for a region that does not change."""

WORD = re.compile(r"[^\W\d]\w+")


@dataclass(frozen=True, slots=True)
class Site:
    """text[start:end] becomes `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class EditExample:
    """A document in the middle of an edit, and the next rewrite of one of its regions.

    `before` is the document before the whole edit and `after` the document after it; the current text is `before` with
    the changes of its own history. `region` is whole lines of the current text including their last line break;
    `rewritten` equals their text if nothing should change.
    """

    path: str
    language: str
    before: str
    after: str
    history: tuple[EditHunk, ...]
    region: TextSpan
    rewritten: str
    kind: str

    @property
    def current(self) -> str:
        """The document with the history applied."""
        text = self.before
        for change in self.history:
            if change.path is None:
                text = text[: change.start] + change.inserted + text[change.start + len(change.removed) :]
        return text

    @property
    def region_text(self) -> str:
        return self.current[slice(*self.region)]

    @property
    def is_quiet(self) -> bool:
        """Whether the region does not change."""
        return self.rewritten == self.region_text


@dataclass(frozen=True)
class Stage:
    """An edit whose first `done` steps are made; steps replace whole lines of `before` and do not overlap."""

    path: str
    language: str
    kind: str
    before: str
    steps: tuple[Site, ...]
    done: int

    @cached_property
    def history(self) -> tuple[EditHunk, ...]:
        changes = []
        for number, step in enumerate(self.steps[: self.done]):
            start = moved(step.start, self.steps[:number])
            changes.append(EditHunk(start, self.before[step.start : step.end], step.text))
        return tuple(changes)

    @cached_property
    def current(self) -> str:
        return applied(self.before, self.steps[: self.done])

    @cached_property
    def made(self) -> list[TextSpan]:
        """The spans of the done steps' lines in the current text."""
        done = self.steps[: self.done]
        starts = [moved(step.start, [other for other in done if other is not step]) for step in done]
        return [(start, start + len(step.text)) for start, step in zip(starts, done, strict=True)]

    @cached_property
    def open(self) -> list[Site]:
        """The remaining steps, as replacements in the current text."""
        done = self.steps[: self.done]
        left = self.steps[self.done :]
        starts = [moved(step.start, done) for step in left]
        return [Site(start, start + step.end - step.start, step.text) for start, step in zip(starts, left, strict=True)]

    @property
    def height(self) -> int:
        """Lines of the current text that the next step replaces."""
        return self.current.count("\n", self.open[0].start, self.open[0].end)

    def next_edit(self, above: int, below: int) -> EditExample | None:
        """The next step's lines with `above` and `below` lines around, rewritten; None if they cut another step."""
        target = self.open[0]
        start, end = self._around(target.start, target.end, above, below)
        inside = [s for s in self.open if s == target or (start <= s.start and s.end <= end and s.start < end)]
        if any(s.start < end and start < s.end for s in self.open if s not in inside):
            return None
        here = [Site(s.start - start, s.end - start, s.text) for s in inside]
        return self._example((start, end), applied(self.current[start:end], here))

    def quiet(self, at: int, above: int, below: int) -> EditExample | None:
        """The line at `at` with `above` and `below` lines around, unchanged; None if a step is open there."""
        start, end = self._around(line_start(self.current, at), line_end(self.current, at), above, below)
        if start == end or any(s.start <= end and start <= s.end for s in self.open):
            return None
        return self._example((start, end), self.current[start:end])

    def around_change(self, above: int, below: int) -> EditExample | None:
        """The last changed line with `above` and `below` lines around, as the server cuts a region around the cursor:
        with what is open there made, or unchanged. None without a change, and if a step is only partly there."""
        if not self.made:
            return None
        first, last = self.made[-1]
        at = max(first, last - 1)
        start, end = self._around(line_start(self.current, at), line_end(self.current, at), above, below)
        inside = [s for s in self.open if start <= s.start and s.end <= end and s.start < end]
        if start == end or any(s.start < end and start < s.end for s in self.open if s not in inside):
            return None
        here = [Site(s.start - start, s.end - start, s.text) for s in inside]
        return self._example((start, end), applied(self.current[start:end], here), MAX_REGION_CHARS)

    def quiet_places(self, rng: random.Random) -> Iterator[int]:
        """Offsets where an edit could be expected but is not: at done steps, at the same words, anywhere."""
        while True:
            kind = rng.random()
            if kind < 0.4 and self.made:
                start, end = rng.choice(self.made)
                yield min(rng.randrange(start, max(start + 1, end)), len(self.current) - 1)
            elif kind < 0.75 and self._mentions:
                yield rng.choice(self._mentions)
            else:
                yield rng.randrange(len(self.current))

    @cached_property
    def _mentions(self) -> list[int]:
        """Offsets of the history's words where no step is open."""
        words = sorted(word for word in changed_words(self.history) if len(word) > 2)[:12]
        if not words:
            return []
        found = re.finditer(rf"\b(?:{'|'.join(map(re.escape, words))})\b", self.current)
        places = (match.start() for match in found)
        return [at for at in places if not any(s.start <= at <= s.end for s in self.open)][:200]

    def _around(self, start: int, end: int, above: int, below: int) -> TextSpan:
        """The span extended to whole lines of the current text; an empty span gets at least one line."""
        text = self.current
        if start == end and not above and not below:
            above, below = (0, 1) if end < len(text) else (1, 0)
        for _ in range(above):
            start = line_start(text, start - 1) if start else 0
        for _ in range(below):
            end = line_end(text, end) if end < len(text) else end
        return start, end

    def _example(self, region: TextSpan, rewritten: str, most: int = REGION_CHARS) -> EditExample | None:
        if max(region[1] - region[0], len(rewritten)) > most:
            return None
        after = applied(self.before, self.steps)
        return EditExample(self.path, self.language, self.before, after, self.history, region, rewritten, self.kind)


def choose_example(
    stage: Stage, is_quiet: bool, fits: Callable[[EditExample], bool], rng: random.Random, window: int = 0
) -> EditExample | None:
    """An example of the stage with some lines around it, fewer if it does not fit; None if nothing fits.

    `window`: the region has so many lines, with the change anywhere in it; 0 for the change's lines and a few more.
    """
    if window:
        above, below = (window // 2, window // 2) if is_quiet else _margins(window - stage.height, rng)
    else:
        above, below = rng.choice((0, 0, 1, 2)), rng.choice((0, 0, 1, 2))
    places = [*islice(stage.quiet_places(rng), MAX_QUIET_ATTEMPTS)] if is_quiet else [-1]
    for at in places:
        for size in dict.fromkeys(((above, below), (min(above, 1), min(below, 1)), (0, 0))):
            example = stage.quiet(at, *size) if is_quiet else stage.next_edit(*size)
            if example and fits(example):
                return example
    return None


def _margins(left: int, rng: random.Random) -> tuple[int, int]:
    """Lines above and below a change that leaves `left` lines of a window."""
    left = max(0, left)
    above = left // 2 if rng.random() < CENTRED_SHARE else rng.randint(0, left)
    return above, left - above


def changed_words(changes: Sequence[EditHunk]) -> set[str]:
    """Words that occur on only one side of a change."""
    return {
        word for change in changes for word in set(WORD.findall(change.removed)) ^ set(WORD.findall(change.inserted))
    }


def moved(at: int, done: Sequence[Site]) -> int:
    """The offset `at` of `before` after the done steps; lines inserted at an offset come before it."""
    return at + sum(len(step.text) - (step.end - step.start) for step in done if step.end <= at)


def applied(text: str, sites: Iterable[Site]) -> str:
    """The text after applying all sites, which must not overlap."""
    parts, at = [], 0
    for site in sorted(sites, key=lambda site: (site.start, site.end)):
        parts += [text[at : site.start], site.text]
        at = site.end
    return "".join([*parts, text[at:]])


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """The offset after the line break of the line that contains `at`."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1
