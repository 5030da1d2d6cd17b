"""Positions of the list, and what they look like in an editor: texts are read from the clones of the repositories."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from mercury_engine.text.lines import lines_of

from mercury_lab.commit_edits.changes import Change
from mercury_lab.editing.line_edits import LineEdit, cursor_behind
from mercury_lab.editing.scenarios import Scenario
from mercury_lab.training.commits.history import Blobs
from mercury_lab.training.commits.repositories import folder_of
from mercury_lsp.errors import UsageError

LIST = Path("tests/data/commit_edits/positions.json")

Half = Literal["develop", "held-out"]
HALVES: tuple[Half, ...] = get_args(Half)


@dataclass(frozen=True, slots=True)
class Source:
    """A repository of the list; its history is read up to `commit`."""

    name: str
    commit: str
    licence: str
    half: Half


@dataclass(frozen=True, slots=True)
class PositionFile:
    """A file that a commit changes."""

    path: str
    commit: str


@dataclass(frozen=True)
class Position:
    """Where an editor asks: `earlier` changes are in the text when it is opened, `made` ones are typed, `left` ones are
    right next. Silence is right if none is left.
    """

    repository: str
    shape: str
    language: str
    files: tuple[PositionFile, ...]
    earlier: tuple[Change, ...]
    made: tuple[Change, ...]
    left: tuple[Change, ...]
    typed: int = 0
    """Characters typed of the first change left, which inserts a line."""
    is_undone: bool = False
    """The user has taken the changes back, the last one first."""

    @property
    def name(self) -> str:
        first = self.made[0]
        return f"{self.files[0].commit[:12]} {self.shape} {first.file}:{first.start}"

    def row(self) -> dict[str, Any]:
        """The position as an object of the list."""
        changes = {name: [_numbers(each) for each in getattr(self, name)] for name in ("earlier", "made", "left")}
        files = [[each.path, each.commit] for each in self.files]
        extras = {"typed": self.typed, "is_undone": self.is_undone}
        kept = {name: value for name, value in extras.items() if value}
        head = {"repository": self.repository, "shape": self.shape, "language": self.language, "files": files}
        return head | changes | kept

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> "Position":
        """The position of an object of the list."""
        changes = {name: tuple(Change(*each) for each in row[name]) for name in ("earlier", "made", "left")}
        files = tuple(PositionFile(*each) for each in row["files"])
        return cls(**row | changes | {"files": files})


@dataclass(frozen=True)
class PositionList:
    """The list: its repositories and positions."""

    since: str
    """Date of the oldest commits, as 2026-07-01."""
    sources: tuple[Source, ...]
    positions: tuple[Position, ...]
    newest: str = ""
    """Date of the newest commit of all clones."""

    @cached_property
    def halves(self) -> dict[str, Half]:
        return {each.name: each.half for each in self.sources}

    def half(self, half: Half) -> list[Position]:
        """The positions of a half."""
        return [each for each in self.positions if self.halves[each.repository] == half]


def _numbers(change: Change) -> list[int]:
    return [change.file, change.start, change.end, change.new_start, change.new_end]


def write_list(path: Path, found: PositionList) -> None:
    """Write the list, a line for every repository and position."""
    sources = ",\n".join(
        json.dumps({"name": s.name, "commit": s.commit, "licence": s.licence, "half": s.half}) for s in found.sources
    )
    positions = ",\n".join(json.dumps(each.row()) for each in found.positions)
    head = f'{{"since": "{found.since}", "newest": "{found.newest}",\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{head}"repositories": [\n{sources}\n],\n"positions": [\n{positions}\n]}}\n', "utf-8")


def read_list(path: Path = LIST) -> PositionList:
    """The list. Raises UsageError if it cannot be read."""
    try:
        record = json.loads(path.read_text("utf-8"))
        sources = tuple(Source(**each) for each in record["repositories"])
        positions = tuple(Position.of_row(row) for row in record["positions"])
        return PositionList(record["since"], sources, positions, record["newest"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no list of positions ({error}); build it with `commit-list`") from error


class Texts:
    """Reads files as they were before and after commits, from the clones below a folder; a context manager."""

    def __init__(self, mirror: Path, sources: Iterable[Source]) -> None:
        self._mirror, self._names = mirror, {each.name for each in sources}
        self._open: dict[str, Blobs] = {}

    def __enter__(self) -> "Texts":
        return self

    def __exit__(self, *problem: Any) -> None:
        for blobs in self._open.values():
            blobs.__exit__(None, None, None)

    def read(self, repository: str, file: PositionFile) -> tuple[str, str]:
        """The texts before and after. Raises UsageError if the clone lacks them."""
        if repository not in self._open:
            self._open[repository] = Blobs(folder_of(repository, self._mirror))
        blobs = self._open[repository]
        before, after = (blobs.read(f"{revision}:{file.path}") for revision in (f"{file.commit}^", file.commit))
        if before is None or after is None:
            raise UsageError(f"the clone of {repository} below {self._mirror} lacks {file.commit[:12]}; fetch it again")
        return plain(before), plain(after)


def plain(content: bytes) -> str:
    """The text with plain newlines."""
    return content.decode("utf-8-sig").replace("\r\n", "\n")


@dataclass(slots=True)
class _Desk:
    """The files of a position while changes are made in them."""

    before: Sequence[list[str]]
    after: Sequence[list[str]]
    paths: Sequence[str]
    done: list[Change] = field(default_factory=list)
    extra: tuple[int, int] | None = None
    """File, and line before the commit, of a line that is only begun."""

    def edit(self, change: Change) -> LineEdit:
        """The change where it is now."""
        text = "".join(self.after[change.file][change.new_start : change.new_end])
        start = self._moved(change)
        return LineEdit(self.paths[change.file], start, start + change.end - change.start, text)

    def make(self, change: Change) -> LineEdit:
        made = self.edit(change)
        self.done.append(change)
        return made

    def undo(self) -> LineEdit:
        """Take the last change back."""
        change = self.done.pop()
        text = "".join(self.before[change.file][change.start : change.end])
        start = self._moved(change)
        return LineEdit(self.paths[change.file], start, start + change.new_end - change.new_start, text)

    def _moved(self, change: Change) -> int:
        above = (each for each in self.done if each.file == change.file and each < change)
        is_below = self.extra is not None and self.extra[0] == change.file and self.extra[1] <= change.start
        return change.start + sum(each.growth for each in above) + is_below


def scenario(at: Position, texts: Texts) -> Scenario:
    """A position as a scenario: what is opened, typed, and right next. Raises UsageError if a clone lacks it."""
    read = [texts.read(at.repository, file) for file in at.files]
    desk = _Desk(
        [lines_of(before) for before, _ in read],
        [lines_of(after) for _, after in read],
        [file.path for file in at.files],
    )
    files = {file.path: before for file, (before, _) in zip(at.files, read, strict=True)}
    for change in at.earlier:
        files = desk.make(change).apply(files)
    made = [desk.make(change) for change in at.made]
    if at.is_undone:
        made += [desk.undo() for _ in at.made]
    wants = _wants(at, desk, made)
    return Scenario(at.repository, at.shape, at.name, files, tuple(made), _cursor(at, files, made), tuple(wants))


def _wants(at: Position, desk: _Desk, made: list[LineEdit]) -> list[LineEdit]:
    """What is left, from top to bottom; a begun line is made."""
    if not at.typed:
        return [desk.edit(change) for change in sorted(at.left)]
    first = desk.edit(at.left[0])
    made.append(LineEdit(first.path, first.start, first.start, first.text[: at.typed] + "\n"))
    desk.extra = (at.left[0].file, at.left[0].start)
    begun = LineEdit(first.path, first.start, first.start + 1, first.text)
    return [begun if change == at.left[0] else desk.edit(change) for change in sorted(at.left)]


def _cursor(at: Position, files: dict[str, str], made: Sequence[LineEdit]) -> tuple[str, int]:
    path, offset = cursor_behind(files, made)
    if at.typed:  # behind what was typed, before its line break
        now = dict(files)
        for edit in made:
            now = edit.apply(now)
        start = sum(map(len, lines_of(now[path])[: made[-1].start]))
        return path, start + at.typed
    return path, offset
