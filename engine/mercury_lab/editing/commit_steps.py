"""Positions in real commits, as scenarios: some steps of a commit are made, and the others are right next.

The list names commits and the order of their steps; their texts are read from the split `test` of the folder that
`python -m mercury_lab.training commits` wrote, whose repositories training never sees. A line of the list has the
commit, the numbers of its steps in the order in which they are made, and how many of them are made; if all are, silence
is right. A last number is the file that the user has moved on to, which no step changes.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mercury_engine.text.lines import lines_of

from mercury_lab.editing.line_edits import LineEdit, cursor_behind
from mercury_lab.editing.scenarios import Scenario
from mercury_lab.training.commits.build import read_split
from mercury_lab.training.commits.commit_edit import CommitEdit
from mercury_lab.training.commits.moments import Moment, ordered
from mercury_lsp.documents.languages import LANGUAGES, language_of
from mercury_lsp.errors import UsageError

LIST = "commit_steps.txt"

POSITIONS = 300
"""Positions of the list, half of them quiet."""

MAX_MISSING_SHARE = 0.2
"""Largest share of the list's commits that a folder may lack: clones of other days lack a few."""

MAX_FILE_CHARS = 60_000
MAX_FILES = 4
"""Files that are opened: those with steps, then others that earlier commits changed."""


@dataclass(frozen=True, slots=True)
class StepPosition:
    """A line of the list."""

    commit: str
    order: tuple[int, ...]
    done: int
    moved_to: int | None = None

    def __str__(self) -> str:
        moved = [] if self.moved_to is None else [str(self.moved_to)]
        return " ".join([self.commit, ",".join(map(str, self.order)), str(self.done), *moved])

    @classmethod
    def parse(cls, line: str) -> "StepPosition":
        commit, order, done, *moved = line.split()
        return cls(commit, tuple(map(int, order.split(","))), int(done), int(moved[0]) if moved else None)


def read_steps(commits: Path, folder: Path) -> list[Scenario]:
    """The positions of the list in `folder` whose commits are in the split. Raises UsageError if too many are not."""
    rows = (line for line in (folder / LIST).read_text("utf-8").splitlines() if line and line[0] != "#")
    positions = [StepPosition.parse(row) for row in rows]
    wanted = {each.commit for each in positions}
    edits = {edit.commit: edit for edit in read_split(commits, "test") if edit.commit in wanted}
    missing = len(wanted - edits.keys())
    if missing > MAX_MISSING_SHARE * len(wanted):
        raise UsageError(f"{commits} lacks {missing} commits of the list; run `mercury_lab.training commits`")
    return [scenario(each, edits[each.commit]) for each in positions if each.commit in edits]


def scenario(at: StepPosition, edit: CommitEdit) -> Scenario:
    """A position as a scenario; its source is the repository."""
    moment = Moment(edit, at.order, at.done)
    paths = [file.path for file in edit.files]
    numbers = opened(edit) if at.moved_to is None else [*range(edit.changed), at.moved_to]
    files = {paths[number]: edit.files[number].text for number in numbers}
    made = []
    for done in range(at.done):
        step = Moment(edit, at.order, done).open[0]
        made.append(LineEdit(paths[step.document], step.start, step.end, step.text))
    wants = tuple(LineEdit(paths[step.document], step.start, step.end, step.text) for step in moment.open)
    title = f"{edit.commit[:12]} after {at.done} of {len(at.order)}"
    kind = "moved on" if at.moved_to is not None else "finished" if moment.is_quiet else "next step"
    return Scenario(edit.repository, kind, title, files, tuple(made), _cursor(at, edit, files, made), wants)


def _cursor(at: StepPosition, edit: CommitEdit, files: dict[str, str], made: Sequence[LineEdit]) -> tuple[str, int]:
    """Behind the last change; at the end of the middle line of the file that the user has moved on to."""
    if at.moved_to is not None:
        lines = lines_of(edit.files[at.moved_to].text)
        return edit.files[at.moved_to].path, len("".join(lines[: len(lines) // 2]).rstrip("\n"))
    return cursor_behind(files, made)


def opened(edit: CommitEdit) -> list[int]:
    """The files with steps, and as many others as there is room for."""
    return list(range(min(len(edit.files), max(edit.changed, MAX_FILES))))


def draw(edits: Iterable[CommitEdit], count: int, seed: int) -> list[StepPosition]:
    """`count` positions, half of them quiet, from all repositories in turn; no commit serves twice."""
    rng = random.Random(f"commit steps {seed}")
    by_repository: dict[str, list[CommitEdit]] = {}
    for edit in edits:
        if all(_is_fit(file.path, file.text) for file in edit.files[: edit.changed]):
            by_repository.setdefault(edit.repository, []).append(edit)
    for own in by_repository.values():
        rng.shuffle(own)
    found: dict[bool, list[StepPosition]] = {False: [], True: []}
    while any(by_repository.values()) and sum(map(len, found.values())) < count:
        for own in filter(None, by_repository.values()):
            edit = own.pop()
            is_quiet = len(edit.steps) == 1 or len(found[True]) < len(found[False])
            if len(found[is_quiet]) < count // 2:
                found[is_quiet].append(_drawn(edit, is_quiet, rng))
    return [position for pair in zip(found[False], found[True], strict=False) for position in pair]


def _is_fit(path: str, text: str) -> bool:
    return language_of(path) in LANGUAGES and len(text) <= MAX_FILE_CHARS


def _drawn(edit: CommitEdit, is_quiet: bool, rng: random.Random) -> StepPosition:
    order = ordered(edit, rng)
    if not is_quiet:
        return StepPosition(edit.commit, order, rng.randrange(1, len(order)))
    others = [n for n in range(edit.changed, len(edit.files)) if _is_fit(edit.files[n].path, edit.files[n].text)]
    moved_to = rng.choice(others) if others and rng.random() < 0.4 else None
    return StepPosition(edit.commit, order, len(order), moved_to)


def listed(positions: Sequence[StepPosition], seed: int) -> Iterator[str]:
    """The lines of the list."""
    yield "# Positions in commits: commit, order of steps, steps made, file that the user moved on to."
    yield f"# Drawn with seed {seed} (mercury_lab.editing.commit_steps.draw)."
    yield from map(str, positions)
