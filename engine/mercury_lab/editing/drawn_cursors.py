"""Cursors drawn from public repositories (`commit_edits.cursor_list`): a list of positions; texts are in clones."""

import json
from dataclasses import dataclass
from pathlib import Path

from mercury_lab.editing.cursors import Cursor
from mercury_lab.training.commits.history import Blobs
from mercury_lab.training.commits.repositories import folder_of
from mercury_lsp.errors import UsageError

LIST = Path("tests/data/situations/drawn.json")

PLACES = ("whole line", "rest of a line", "argument list", "block")
"""A line after its indentation; a line from the end of a word or mark; between two brackets of a line; the lines of a
block after its first line's indentation."""


@dataclass(frozen=True, slots=True)
class Source:
    """A repository of the list, its files as of `commit`."""

    name: str
    commit: str
    licence: str


@dataclass(frozen=True, slots=True)
class DrawnCursor:
    """Where the cursor stands and where the author's text ends; lines and columns (characters) count from 0."""

    repository: str
    path: str
    place: str
    line: int
    column: int
    end_line: int
    end_column: int


def read_drawn(path: Path, mirror: Path) -> list[Cursor]:
    """The cursors of a list, with their texts. Raises UsageError if the list or a clone lacks something."""
    try:
        record = json.loads(path.read_text("utf-8"))
        commits = {source["name"]: source["commit"] for source in record["repositories"]}
        drawn = [DrawnCursor(**row) for row in record["cursors"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no list of cursors ({error}); draw one with `cursor-list`") from error
    found = list[Cursor]()
    for name, commit in commits.items():
        with Blobs(folder_of(name, mirror)) as blobs:
            for at in (each for each in drawn if each.repository == name):
                content = blobs.read(f"{commit}:{at.path}")
                if content is None:
                    raise UsageError(f"the clone of {name} below {mirror} lacks {commit[:12]}; fetch it again")
                found.append(_cursor(at, content.decode("utf-8-sig").replace("\r\n", "\n")))
    return found


def _cursor(at: DrawnCursor, text: str) -> Cursor:
    starts = [0, *(number + 1 for number, character in enumerate(text) if character == "\n")]
    start, end = starts[at.line] + at.column, starts[at.end_line] + at.end_column
    return Cursor(Path(at.repository, at.path), at.place, text[:start], text[end:], (text[start:end],), False)
