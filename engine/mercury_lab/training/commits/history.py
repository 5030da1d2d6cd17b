"""Read a bare clone with git: its commits, their hunks and the text of files.

Nothing in a clone is run: external diff programs and text converters are off.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from mercury_lab.training.data.sources import SourceError

MAX_COMMITS = 4_000
"""The newest commits of a history that are read."""

_RAW = re.compile(r":\d+ (\d+) ([0-9a-f]{40}) ([0-9a-f]{40}) ([A-Z])\d*\t([^\t\"]+)")
_INDEX = re.compile(rb"index ([0-9a-f]{40})\.\.([0-9a-f]{40})")
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PLAIN_FILE_MODES = ("100644", "100755", "000000")


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file of a commit; `status` is git's letter (M, A, D), `before` and `after` are blobs."""

    path: str
    before: str
    after: str
    status: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that is not a merge, and the files it changes."""

    id: str
    author: str
    subject: str
    files: tuple[ChangedFile, ...]


@dataclass(frozen=True, slots=True)
class LineHunk:
    """Lines [start, end) of the old file become lines [new_start, new_end) of the new one; counted from 0."""

    start: int
    end: int
    new_start: int
    new_end: int


@dataclass(slots=True)
class FileHunks:
    """The hunks of one file, from top to bottom, and its blobs."""

    before: str
    after: str
    hunks: list[LineHunk] = field(default_factory=list)


def commits(folder: Path, head: str, since: str = "") -> Iterator[Commit]:
    """The newest MAX_COMMITS commits up to `head` except merges, oldest first; from a date on, as 2026-07-01."""
    dates = (f"--since={since}T00:00:00Z",) if since else ()
    command = ("log", f"-{MAX_COMMITS}", "--reverse", "--no-merges", "--raw", "--no-abbrev", "--no-renames", *dates)
    listed = git(folder, *command, "--format=%x01%H%x02%an%x02%s", head).decode("utf-8", "replace")
    for entry in listed.split("\x01")[1:]:
        first, _, rest = entry.partition("\n")
        commit, author, subject = [*first.split("\x02"), "", ""][:3]
        files = (_RAW.fullmatch(line) for line in rest.splitlines())
        yield Commit(
            commit,
            author,
            subject,
            tuple(ChangedFile(m[5], m[2], m[3], m[4]) for m in files if m and m[1] in _PLAIN_FILE_MODES),
        )


def hunks_of(folder: Path, chosen: Sequence[str], suffixes: Iterable[str] = ()) -> dict[str, list[FileHunks]]:
    """The hunks of the files that the given commits change, by commit; none of one whose files a clone lacks.

    `suffixes`: of the files that are looked at; without them all are.
    """
    try:
        return _hunks_of(folder, chosen, suffixes)
    except SourceError:  # clones may leave out large files
        half = len(chosen) // 2
        return hunks_of(folder, chosen[:half], suffixes) | hunks_of(folder, chosen[half:], suffixes) if half else {}


def _hunks_of(folder: Path, chosen: Sequence[str], suffixes: Iterable[str]) -> dict[str, list[FileHunks]]:
    command = ("diff-tree", "--stdin", "--root", "-r", "-p", "-U0", "--full-index", "--no-renames", "--histogram")
    paths = ("--", *(f"*{suffix}" for suffix in suffixes))
    listed = git(folder, *command, "--no-ext-diff", "--no-textconv", *paths, given="\n".join(chosen).encode() + b"\n")
    found: dict[str, list[FileHunks]] = {}
    wanted, files = set(chosen), list[FileHunks]()
    for line in listed.split(b"\n"):  # a line of text begins with a sign, so the matches below are git's own lines
        if line[:2] == b"@@" and (match := _HUNK.match(line)):
            start, count, new_start, new_count = (1 if number is None else int(number) for number in match.groups())
            start, new_start = start - (count > 0), new_start - (new_count > 0)
            files[-1].hunks.append(LineHunk(start, start + count, new_start, new_start + new_count))
        elif line[:6] == b"index " and (match := _INDEX.match(line)):
            files.append(FileHunks(match[1].decode(), match[2].decode()))
        elif len(line) == 40 and (commit := line.decode("ascii", "replace")) in wanted:
            files = found.setdefault(commit, [])
    return found


class Blobs:
    """Reads blobs through one `git cat-file` process; a context manager."""

    def __init__(self, folder: Path) -> None:
        command = ("git", "--git-dir", str(folder), "cat-file", "--batch")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> "Blobs":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()

    def read(self, blob: str) -> bytes | None:
        """The content of a blob; None if the clone lacks it."""
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None and answered is not None
        asked.write(f"{blob}\n".encode())
        asked.flush()
        head = answered.readline().split()
        if len(head) != 3:
            return None
        content = answered.read(int(head[2]))
        answered.read(1)
        return content


def git(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    """What git prints. Raises SourceError."""
    command = ("git", "-c", "core.quotePath=false", "--git-dir", str(folder), *arguments)
    try:
        return subprocess.run(command, input=given, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = (
            error.stderr.decode("utf-8", "replace").strip() if isinstance(error, subprocess.CalledProcessError) else ""
        )
        raise SourceError(f"{folder} cannot be read with git: {said or error}") from error
