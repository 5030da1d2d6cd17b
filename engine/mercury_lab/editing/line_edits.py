"""Edits by whole lines, and the keystrokes that make them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from mercury_engine.text.lines import lines_of

PASTE_CHARS = 400
"""Inserted text that is longer comes at once, as if pasted."""

_TOKEN = re.compile(r"\w+|\s+|.", re.S)


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Lines [start, end) of a file, counted from 0, become `text`, whole lines."""

    path: str
    start: int
    end: int
    text: str

    def apply(self, files: Mapping[str, str]) -> dict[str, str]:
        """The files after the edit."""
        lines = lines_of(files[self.path])
        changed = "".join(lines[: self.start]) + self.text + "".join(lines[self.end :])
        return {**files, self.path: changed}

    def removed(self, files: Mapping[str, str]) -> str:
        """The text that the edit replaces."""
        return "".join(lines_of(files[self.path])[self.start : self.end])

    def touches(self, other: "LineEdit") -> bool:
        """Whether both share a line or meet between two."""
        return self.path == other.path and self.start <= other.end and other.start <= self.end


def line_edit(path: str, old: str, start: int, end: int, text: str) -> LineEdit:
    """The replacement of old[start:end] by whole lines."""
    first = old.rfind("\n", 0, start) + 1
    behind = old.find("\n", end)
    last = len(old) if behind < 0 else behind + 1
    return LineEdit(path, old.count("\n", 0, first), len(lines_of(old[:last])), old[first:start] + text + old[end:last])


def keystrokes(old: str, edit: LineEdit) -> Iterator[tuple[int, int, str]]:
    """The edit as a user makes it, from top to bottom: each changed word erased at once, then typed key by key."""
    lines = lines_of(old)
    at = sum(map(len, lines[: edit.start]))
    before, after = (_TOKEN.findall(text) for text in ("".join(lines[edit.start : edit.end]), edit.text))
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        gone, come = "".join(before[a:b]), "".join(after[c:d])
        if kind != "equal":
            if gone:
                yield at, at + len(gone), ""
            for number, key in enumerate(come if len(come) <= PASTE_CHARS else [come]):
                yield at + number, at + number, key
        at += len(come)


def is_exact(new: str, right: str) -> bool:
    """Whether the texts are equal, blank lines at the end and blanks at the ends of lines aside."""
    return _bare(new) == _bare(right)


def _bare(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def cursor_behind(files: Mapping[str, str], edits: Sequence[LineEdit]) -> tuple[str, int]:
    """Path and offset of the cursor after the last keystroke of the edits of these files."""
    before = dict(files)
    for edit in edits[:-1]:
        before = edit.apply(before)
    last = edits[-1]
    *_, (start, _, text) = keystrokes(before[last.path], last)
    return last.path, start + len(text)
