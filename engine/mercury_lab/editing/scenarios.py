"""Scenarios of next edits: text files, each with a few source files and what users did in them (`*.edits`).

    ==== file ledger.py
    def total(rows):
        return sum(row.amount for row in rows)
    ==== rename rows
    edit
    -def total(rows):
    +def total(entries):
    want
    -    return sum(row.amount for row in rows)
    +    return sum(row.amount for row in entries)
    ==== done rows
    after rows

A scenario's header has its kind and a title. Its parts, in any number:

- `edit [FILE]`: a change that the user made, oldest first;
- `want [FILE]`: an edit that is right next; several of them may be made in any order;
- `or [FILE]`: another right edit for the `want` before it;
- `cursor [FILE] TEXT`: the cursor is at the mark ‸ in a text that occurs once, or once at the end of a line; without
  this part it is after the last change;
- `after TITLE`: the scenario starts after all edits and wants of an earlier one.

The lines of an edit begin with " " (kept), "-" or "+"; the kept and removed lines occur once in the file. FILE may be
left out for the first one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from mercury_engine.text.lines import lines_of

from mercury_lab.editing.line_edits import LineEdit, cursor_behind
from mercury_lsp.documents.languages import language_of
from mercury_lsp.errors import UsageError

WANT_KINDS = ("complete", "rename", "repeat", "signature", "async", "rewrite", "key", "field", "typo")
"""Kinds of scenarios in which an edit is right."""

QUIET_KINDS = ("done", "unrelated", "undone", "format", "debug", "comment", "fresh")
"""Kinds of scenarios in which silence is right; `fresh` has no history."""

CURSOR_MARK = "‸"

_HEADER = "==== "
_PARTS = frozenset({"edit", "want", "or", "cursor", "after"})


@dataclass(frozen=True, slots=True)
class Scenario:
    """Files, the edits made in them, and the edits that are right next; none of them where silence is right."""

    source: str
    kind: str
    title: str
    files: Mapping[str, str]
    """Texts before the first edit, by path."""
    edits: tuple[LineEdit, ...]
    cursor: tuple[str, int]
    """Path and offset, after the edits."""
    wants: tuple[LineEdit, ...]
    """For the files after the edits; each is right on its own."""
    others: tuple[LineEdit, ...] = ()
    """Other right texts for places of `wants`."""

    @property
    def name(self) -> str:
        return f"{self.source}: {self.kind} {self.title}"

    @property
    def is_quiet(self) -> bool:
        return not self.wants

    @property
    def language(self) -> str:
        """The language of the file in which the next edit is, or the cursor."""
        return language_of(PurePath(self.wants[0].path if self.wants else self.cursor[0]).name)

    @property
    def now(self) -> dict[str, str]:
        """The files after the edits."""
        files = dict(self.files)
        for edit in self.edits:
            files = edit.apply(files)
        return files


@dataclass(slots=True)
class _Draft:
    """A scenario while its lines are read; `now` is the state after its edits, `done` also after its wants."""

    kind: str
    title: str
    first: str
    now: dict[str, str]
    done: dict[str, str]
    edits: list[LineEdit] = field(default_factory=list)
    wants: list[LineEdit] = field(default_factory=list)
    others: list[LineEdit] = field(default_factory=list)
    made: list[LineEdit] = field(default_factory=list)
    """The wants, each for the files after the earlier ones."""
    cursor: tuple[str, int] | None = None

    def add(self, part: str, rest: str, hunk: Sequence[str]) -> None:
        """One part with its lines. Raises ValueError."""
        if part == "cursor":
            self.cursor = _marked(rest, self.now, self.first)
            return
        path = rest or self.first
        if path not in self.now:
            raise ValueError(f"no file {path!r}")
        if part == "edit":
            if self.wants:
                raise ValueError("an `edit` follows a `want`")
            self.edits.append(_located(path, hunk, self.now))
            self.now = self.done = self.edits[-1].apply(self.now)
        elif part == "want":
            self.wants.append(_located(path, hunk, self.now))
            self.made.append(_located(path, hunk, self.done))
            self.done = self.made[-1].apply(self.done)
        else:
            if not self.wants:
                raise ValueError("an `or` has no `want` before it")
            self.others.append(_located(rest or self.wants[-1].path, hunk, self.now))

    def follow(self, earlier: "_Draft") -> None:
        """Begin after everything of an earlier scenario."""
        self.edits += [*earlier.edits, *earlier.made]
        self.now = self.done = dict(earlier.done)


def read_scenarios(folder: Path) -> list[Scenario]:
    """The scenarios of all files below a folder, by name. Raises UsageError."""
    paths = sorted(folder.rglob("*.edits")) if folder.is_dir() else []
    found = [each for path in paths for each in read_file(path)]
    if not found:
        raise UsageError(f"no scenarios below {folder}; name a folder of *.edits files (docs/evaluation.md)")
    return found


def read_file(path: Path) -> list[Scenario]:
    """The scenarios of one file. Raises UsageError."""
    files: dict[str, str] = {}
    drafts: dict[str, _Draft] = {}
    for number, header, lines in _sections(path):
        kind, _, title = header.partition(" ")
        try:
            if kind == "file":
                if drafts:
                    raise ValueError("a file follows a scenario")
                files[title] = "".join(f"{line}\n" for line in lines)
                continue
            key = title if kind in WANT_KINDS else header
            if not files or not title or key in drafts:
                raise ValueError("a scenario needs a file before it and a title of its own")
            drafts[key] = _draft(kind, title, files, lines, drafts)
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: {error}") from None
    return [_finished(path.stem, files, draft) for draft in drafts.values()]


def _draft(
    kind: str, title: str, files: Mapping[str, str], lines: Sequence[str], earlier: Mapping[str, _Draft]
) -> _Draft:
    """A scenario from its lines. Raises ValueError."""
    if kind not in WANT_KINDS + QUIET_KINDS:
        raise ValueError(f"unknown kind {kind!r}; allowed: {', '.join(WANT_KINDS + QUIET_KINDS)}")
    draft = _Draft(kind, title, next(iter(files)), dict(files), dict(files))
    for part, rest, hunk in _parts(lines):
        if part != "after":
            draft.add(part, rest, hunk)
        elif rest in earlier:
            draft.follow(earlier[rest])
        else:
            raise ValueError(f"no earlier scenario {rest!r}")
    if bool(draft.wants) != (kind in WANT_KINDS):
        raise ValueError(f"{kind} needs {'a `want`' if kind in WANT_KINDS else 'no `want`'}")
    if (kind == "fresh") == bool(draft.edits):
        raise ValueError("only `fresh` has no edits")
    return draft


def _finished(source: str, files: Mapping[str, str], draft: _Draft) -> Scenario:
    cursor = draft.cursor or (cursor_behind(files, draft.edits) if draft.edits else (draft.first, 0))
    return Scenario(
        source, draft.kind, draft.title, files, tuple(draft.edits), cursor, tuple(draft.wants), tuple(draft.others)
    )


def _sections(path: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Line number, header and lines of every section."""
    header, lines, start = "", list[str](), 0
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if line.startswith(_HEADER):
            if header:
                yield start, header, _without_blank_end(lines)
            header, lines, start = line.removeprefix(_HEADER).strip(), [], number
        else:
            lines.append(line)
    yield start, header, _without_blank_end(lines)


def _without_blank_end(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _parts(lines: Iterable[str]) -> Iterator[tuple[str, str, list[str]]]:
    """The parts of a scenario: word, rest of its line, and its hunk. Raises ValueError."""
    part, rest, hunk = "", "", list[str]()
    for line in lines:
        if line[:1] in (" ", "-", "+") and part:
            hunk.append(line)
            continue
        if not line:
            continue
        if part:
            yield part, rest, hunk
        part, _, rest = line.partition(" ")
        hunk = []
        if part not in _PARTS:
            raise ValueError(f"{line!r} is no part; allowed: {', '.join(sorted(_PARTS))}")
    if part:
        yield part, rest, hunk


def _located(path: str, hunk: Sequence[str], files: Mapping[str, str]) -> LineEdit:
    """The hunk where its old lines are. Raises ValueError."""
    old = [line[1:] + "\n" for line in hunk if line[0] != "+"]
    lines = lines_of(files[path])
    places = [n for n in range(len(lines) - len(old) + 1) if lines[n : n + len(old)] == old]
    if not old or len(places) != 1:
        raise ValueError(f"its old lines occur {len(places)} times in {path}; they must occur once: {''.join(old)!r}")
    kept = [line[0] == " " for line in hunk]
    first = kept.index(False) if False in kept else 0
    last = len(kept) - kept[::-1].index(False) if False in kept else 0
    if first == last:
        raise ValueError("a hunk changes nothing")
    start = places[0] + first
    text = "".join(line[1:] + "\n" for line in hunk[first:last] if line[0] != "-")
    end = start + sum(line[0] != "+" for line in hunk[first:last])
    edit = LineEdit(path, start, end, text)
    if edit.removed(files) == text:
        raise ValueError("a hunk changes nothing")
    return edit


def _marked(text: str, files: Mapping[str, str], first: str) -> tuple[str, int]:
    """The place of the cursor's mark. Raises ValueError."""
    head, _, rest = text.partition(" ")
    path, text = (head, rest) if head in files else (first, text)
    if text.count(CURSOR_MARK) != 1:
        raise ValueError(f"`cursor` needs one {CURSOR_MARK}")
    before, after = text.split(CURSOR_MARK)
    if not after and files[path].count(before) > 1:
        after = "\n"
    if (count := files[path].count(before + after)) != 1:
        raise ValueError(f"the cursor's text occurs {count} times in {path}; it must occur once")
    return path, files[path].index(before + after) + len(before)
