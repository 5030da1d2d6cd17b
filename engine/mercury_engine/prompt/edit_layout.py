"""The layout of recent edits and the region to rewrite, shared by training and the server.

Two blocks come last among the far blocks, just before the near chunk; the region itself is the gap:

    # recent edits:
    # @@
    # -def load(path):
    # +def load(path, encoding):
    # @@ tools/show.py
    # -text = load(name)
    # +text = load(name, "utf-8")

    # old version of the next lines:
        rows = load(table)

The titles are comments of the language; the region is plain code, so that its tokens are those of its replacement.
"""

from collections.abc import Sequence

from mercury_engine.api import EditHunk
from mercury_engine.prompt.layout import CommentMarks, comment_marks
from mercury_engine.text.common_prefix import common_prefix
from mercury_engine.text.lines import equal_ends

HISTORY_CHARS = 600
"""Most characters of the block of recent edits; older edits are left out first."""

LINE_CHARS = 160
"""Most characters of an edit's line; longer lines are cut to the part that changed."""

_TITLE, _REGION, _MORE = "recent edits:", "old version of the next lines:", "..."


def edit_blocks(history: Sequence[EditHunk], region_text: str, language: str) -> tuple[str, ...]:
    """The last far blocks of an edit request: recent edits (left out without history), then the region.

    `history` is oldest first; `region_text` is whole lines of the current text; `language` is an LSP
    languageId or a language of the corpus. Every block ends in a line break.
    """
    marks = comment_marks(language)
    recent = _recent_edits(history, marks)
    end = "" if region_text.endswith("\n") or not region_text else "\n"
    region = marks.line(_REGION) + region_text + end
    return (recent, region) if recent else (region,)


def _recent_edits(history: Sequence[EditHunk], marks: CommentMarks) -> str:
    """Recent edits as a unified diff, newest last, up to `HISTORY_CHARS`; empty without history."""
    room = HISTORY_CHARS - len(marks.line(_TITLE))
    shown: list[str] = []
    for change in reversed(history):
        lines = _lines(change) if shown else _fitting(_lines(change), room, marks)
        text = _commented(lines, marks)
        if not lines or len(text) > room:
            break
        shown.append(text)
        room -= len(text)
    return marks.line(_TITLE) + "".join(reversed(shown)) if shown else ""


def _lines(change: EditHunk) -> list[str]:
    """The head of a change and its lines, without equal lines at either end."""
    removed, inserted = _rows(change.removed), _rows(change.inserted)
    first, last = equal_ends(removed, inserted)
    removed, inserted = (rows[first : len(rows) - last] for rows in (removed, inserted))
    if not removed and not inserted:
        return []
    if len(removed) == len(inserted):
        pairs = [_clipped(*pair) for pair in zip(removed, inserted, strict=True)]
        removed, inserted = [old for old, _ in pairs], [new for _, new in pairs]
    head = f"@@ {change.path}" if change.path else "@@"
    minus, plus = (f"-{line[:LINE_CHARS]}" for line in removed), (f"+{line[:LINE_CHARS]}" for line in inserted)
    return [head, *minus, *plus]


def _rows(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _clipped(old: str, new: str) -> tuple[str, str]:
    """Both lines without the long start that they share."""
    if max(len(old), len(new)) <= LINE_CHARS:
        return old, new
    same = common_prefix(old, new)
    cut = max(0, same - LINE_CHARS // 4)
    return (_MORE + old[cut:], _MORE + new[cut:]) if cut else (old, new)


def _fitting(lines: list[str], room: int, marks: CommentMarks) -> list[str]:
    """The lines of a change; if there are too many, without the last ones of each side."""
    if len(_commented(lines, marks)) <= room:
        return lines
    removed = [line for line in lines[1:] if line.startswith("-")]
    inserted = lines[1 + len(removed) :]
    for kept in range(max(len(removed), len(inserted)) - 1, 0, -1):
        short = [lines[0], *_first(removed, kept), *_first(inserted, kept)]
        if len(_commented(short, marks)) <= room:
            return short
    return [_MORE]


def _first(lines: list[str], count: int) -> list[str]:
    return lines if len(lines) <= count else [*lines[:count], lines[0][0] + _MORE]


def _commented(lines: Sequence[str], marks: CommentMarks) -> str:
    return "".join(map(marks.line, lines))
