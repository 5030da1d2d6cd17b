"""The cursors of a folder: source files, and beside each one a TOML file that lists places in it.

    [[cursor]]
    place = "argument list"
    at = "total = sum(‹self.prices.values()›)"
    or = ["self.prices.values(), 0.0"]
    silent = true

`at` is a text that occurs once in the file, with marks around what the author types at the cursor: the text up to the
end of the line, or a part of it when text follows, and perhaps more lines. The marked text is removed and the rest of
the file stays. `or` lists other right answers. `silent` marks a place where nothing should be shown, because nobody
could know the author's text or because there is next to nothing to type.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mercury_lsp.errors import UsageError

OPEN_MARK, CLOSE_MARK = "‹", "›"

PLACES = (
    "body",
    "argument list",
    "class",
    "comment",
    "import",
    "string",
    "test",
    "block opener",
    "middle of a line",
    "middle of a word",
)
"""Kinds of places, in the order in which they are reported."""

_KEYS = {"place", "at", "or", "silent"}


@dataclass(frozen=True, slots=True)
class Cursor:
    """A cursor in a file, and what may be typed there."""

    path: Path
    place: str
    before: str
    after: str
    """The document on both sides of the cursor."""
    answers: tuple[str, ...]
    """Texts that are right at the cursor, the author's own first; each may have several lines."""
    silent: bool
    """Whether silence is right."""
    name: str = ""

    def typed(self, count: int) -> "Cursor":
        """The cursor after the first `count` characters of the author's line; answers that begin otherwise go."""
        typed = self.answers[0].partition("\n")[0][:count]
        answers = tuple(answer[len(typed) :] for answer in self.answers if answer.startswith(typed))
        return Cursor(self.path, self.place, self.before + typed, self.after, answers, self.silent)


def read_cursors(folder: Path) -> list[Cursor]:
    """The cursors of all files below a folder, by name. Raises UsageError."""
    lists = sorted(folder.rglob("*.toml")) if folder.is_dir() else []
    found = [cursor for path in lists for cursor in _of_file(path)]
    if not found:
        raise UsageError(
            f"no cursors below {folder}; name a folder of source files, each with a list FILE.toml beside it"
        )
    return found


def read_beginnings(path: Path) -> list[Cursor]:
    """The cursors of a JSON list of objects: name, path, before, after, and `expected`, the right beginnings.

    Raises UsageError.
    """
    try:
        rows = json.loads(path.read_text("utf-8"))
        return [
            Cursor(Path(row["path"]), "body", row["before"], row["after"], tuple(row["expected"]), False, row["name"])
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no list of cursors with their right beginnings ({error!r})") from error


def _of_file(path: Path) -> Iterator[Cursor]:
    source = path.with_suffix("")
    if not source.is_file():
        raise UsageError(f"{path} lists cursors of {source.name}, which is not beside it")
    try:
        entries = tomllib.loads(path.read_text("utf-8")).get("cursor", [])
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    text = source.read_text("utf-8")
    for number, entry in enumerate(entries, 1):
        try:
            yield _cursor(source, text, entry)
        except ValueError as error:
            raise UsageError(f"cursor {number} of {path}: {error}") from None


def _cursor(source: Path, text: str, entry: Mapping[str, Any]) -> Cursor:
    """One entry of a list. Raises ValueError."""
    if unknown := set(entry) - _KEYS:
        raise ValueError(f"unknown key {min(unknown)!r}; allowed: {', '.join(sorted(_KEYS))}")
    if entry.get("place") not in PLACES:
        raise ValueError(f"place is {entry.get('place')!r}; allowed: {', '.join(PLACES)}")
    at = str(entry.get("at", ""))
    if at.count(OPEN_MARK) != 1 or at.count(CLOSE_MARK) != 1:
        raise ValueError(f"`at` needs one {OPEN_MARK} and one {CLOSE_MARK} around the author's text")
    left, _, marked = at.partition(OPEN_MARK)
    typed, _, right = marked.partition(CLOSE_MARK)
    if not typed.strip():
        raise ValueError("nothing is typed there")
    if (count := text.count(left + typed + right)) != 1:
        raise ValueError(f"`at` occurs {count} times in the file; it must occur once")
    start = text.index(left + typed + right) + len(left)
    answers = (typed, *entry.get("or", ()))
    return Cursor(
        source, entry["place"], text[:start], text[start + len(typed) :], answers, bool(entry.get("silent", False))
    )
