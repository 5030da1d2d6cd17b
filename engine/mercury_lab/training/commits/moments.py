"""Moments of a commit: some steps made, the others open, in an order in which a user might make them."""

import random
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from mercury_engine.text.lines import lines_of

from mercury_lab.training.commits.commit_edit import CommitEdit, Step

SHUFFLED_SHARE = 0.3
"""Share of commits whose steps are in random order; in the others they go down the file from the first one."""

UNRELATED_SHARE = 0.4
"""Share of quiet moments in which the user has moved on to a file that another commit changes."""

MIN_TYPED_CHARS = 2

WORD = re.compile(r"[^\W\d]\w+")
"""Names and keywords of two characters or more."""

_DEFINES = re.compile(r"\b(?:def|class|fn|func|function|struct|enum|trait|interface|type|const|let|var|define)\s+(\w+)")


@dataclass(frozen=True)
class Document:
    """A file by its path and its lines, which keep their line breaks."""

    path: str
    lines: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        return "".join(self.lines)

    @cached_property
    def starts(self) -> list[int]:
        """The offset of every line, and of the end."""
        return list(accumulate(map(len, self.lines), initial=0))

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1


@dataclass(frozen=True, slots=True)
class OpenStep:
    """Lines [start, end) of a document, as they are now, that become `text`."""

    document: int
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Moment:
    """The first `done` steps of an order are made. `typed`: characters typed of the one after them.

    `elsewhere`: the document that the user has moved on to; the documents of a quiet moment may include those of
    another commit.
    """

    edit: CommitEdit
    order: tuple[int, ...]
    done: int
    typed: int = 0
    elsewhere: int | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left to change."""
        return self.done == len(self.order)

    @cached_property
    def made(self) -> tuple[Step, ...]:
        """The steps made, in order; the last one may have only its typed part."""
        steps = [self.edit.steps[number] for number in self.order[: self.done]]
        if self.typed:
            step = self.edit.steps[self.order[self.done]]
            steps.append(replace(step, text=step.text[: self.typed].rstrip("\n") + "\n"))
        return tuple(steps)

    @cached_property
    def open(self) -> tuple[OpenStep, ...]:
        """The remaining steps, the next one first; of a partly typed one, the line that is being typed."""
        found = list[OpenStep]()
        for number in self.order[self.done :]:
            step = self.edit.steps[number]
            start = self.moved(step)
            end = start + step.end - step.start
            if self.typed and not found:
                typed = self.made[-1].text.count("\n") - 1
                start, end = start + typed, start + typed + 1
                step = replace(step, text="".join(lines_of(step.text)[typed:]))
            found.append(OpenStep(step.file, start, end, step.text))
        return tuple(found)

    def moved(self, step: Step) -> int:
        """Where the step's first line is after the steps made; a step never overlaps another one."""
        above = (each for each in self.made if each.file == step.file and each.start < step.start)
        return step.start + sum(len(lines_of(each.text)) - (each.end - each.start) for each in above)

    @property
    def document(self) -> int:
        """The document that the user is in: that of the next step, if there is one."""
        if self.open:
            return self.open[0].document
        return self.made[-1].file if self.elsewhere is None else self.elsewhere

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """The documents as they are now, with the typed part of a step."""
        documents = []
        for number, file in enumerate(self.edit.files):
            own = sorted((step for step in self.made if step.file == number), key=lambda step: step.start)
            lines, kept, at = lines_of(file.text), list[str](), 0
            for step in own:
                kept += (*lines[at : step.start], *lines_of(step.text))
                at = step.end
            documents.append(Document(file.path, tuple(kept + lines[at:])))
        return tuple(documents)


def moments(edit: CommitEdit, rng: random.Random, count: int, other: CommitEdit | None = None) -> Iterator[Moment]:
    """Up to `count` moments with a step left, and half as many, but at least one, with none.

    `other`: a commit whose documents the user may have moved on to.
    """
    order = ordered(edit, rng)
    stages = rng.sample(range(1, len(order)), min(count, len(order) - 1))
    for done in sorted(stages):
        yield Moment(edit, order, done)
    for number in range(max(1, (len(stages) + 1) // 2)):
        if other is not None and (number or rng.random() < UNRELATED_SHARE):
            yield _moved_on(edit, order, other, rng)
        elif not number:
            yield Moment(edit, order, len(order))


def begun(edit: CommitEdit, rng: random.Random) -> Moment | None:
    """A moment in the middle of a step: its first characters are typed; None if no step inserts enough."""
    order = ordered(edit, rng)
    fitting = [n for n, number in enumerate(order) if len(edit.steps[number].text) > 2 * MIN_TYPED_CHARS]
    if not fitting:
        return None
    done = rng.choice(fitting)
    return Moment(edit, order, done, rng.randint(MIN_TYPED_CHARS, len(edit.steps[order[done]].text) - MIN_TYPED_CHARS))


def ordered(edit: CommitEdit, rng: random.Random) -> tuple[int, ...]:
    """The steps' numbers: a definition before its uses, then down the file and on to the next one, or at random."""
    steps, numbers = edit.steps, range(len(edit.steps))
    is_random = rng.random() < SHUFFLED_SHARE
    first = rng.choice(numbers) if is_random else _first(steps)
    top = steps[first]

    def place(number: int) -> tuple[float, ...]:
        step = steps[number]
        is_here = step.file == top.file
        return (
            (not is_here, step.file, rng.random())
            if is_random
            else (not is_here, step.file, is_here and step.start < top.start, step.start)
        )

    return (first, *sorted((number for number in numbers if number != first), key=place))


def _first(steps: Sequence[Step]) -> int:
    """The step that defines most of the names that the other steps use; the topmost one if none does."""
    words = [frozenset(WORD.findall(step.text)) for step in steps]
    defined = [frozenset(_DEFINES.findall(step.text)) for step in steps]
    used = [sum(len(defined[n] & words[m]) for m in range(len(steps)) if m != n) for n in range(len(steps))]
    return max(range(len(steps)), key=lambda n: (used[n] > 0, used[n], -n))


def _moved_on(edit: CommitEdit, order: tuple[int, ...], other: CommitEdit, rng: random.Random) -> Moment:
    """All steps made, and the user in a document of the other commit, or in an unchanged one."""
    known = {file.path for file in edit.files}
    added = tuple(file for file in other.files[: other.changed] if file.path not in known)
    files = (*edit.files, *added)
    joined = CommitEdit(edit.repository, edit.commit, files, edit.changed, edit.steps)
    number = rng.randrange(edit.changed, len(files)) if len(files) > edit.changed else rng.randrange(len(files))
    return Moment(joined, order, len(order), elsewhere=number)
