"""Makes a replacement that the user has made in two lines beside each other again in the next line.

    -var a = 1;        +const a = 1;
    -var b = 2;        +const b = 2;        so        -var c = 3;        +const c = 3;

Both examples replace the same tokens by the same at the same place of their lines; the next line must have them there.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mercury_engine.text.common_prefix import common_prefix

from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.documents.document import Snapshot

MAX_LINES_BETWEEN = 2
"""Lines from one example to the other, and from there to the next line."""

_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class _Replacement:
    """Tokens of a line from `start` on that became others."""

    line: int
    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    text: str
    """The new text, with its blanks."""

    def is_like(self, other: "_Replacement") -> bool:
        return (self.start, self.old, self.text) == (other.start, other.old, other.text)


def next_lines(hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[tuple[Hunk, EditSite]]:
    """The same replacement in the line below the examples, with the latest hunk; hunks come oldest first."""
    own = [hunk for hunk in hunks if hunk.uri == snapshot.uri]
    made = [each for hunk in own[-2:] for each in _replacements(hunk)][-2:]
    if len(made) < 2 or own[-1] is not hunks[-1]:
        return
    first, second = sorted(made, key=lambda each: each.line)
    if not first.is_like(second) or second.line - first.line > MAX_LINES_BETWEEN:
        return
    for line in range(second.line + 1, second.line + 1 + MAX_LINES_BETWEEN):
        if any(each.covers(line) for each in own):
            return
        if (site := _site(second, line, snapshot)) is not None:
            yield own[-1], site
            return


def _replacements(hunk: Hunk) -> Iterator[_Replacement]:
    """What was replaced in the lines of a hunk that has as many as before."""
    before, after = hunk.before_lines, hunk.after_lines
    if len(before) != len(after):
        return
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        ours, theirs = _TOKEN.findall(old), _TOKEN.findall(new)
        start = common_prefix(ours, theirs)
        same = common_prefix(reversed(ours[start:]), reversed(theirs[start:]))
        gone, come = tuple(ours[start : len(ours) - same]), tuple(theirs[start : len(theirs) - same])
        if gone and come:
            text = new[_span(new, start, len(come))]
            yield _Replacement(hunk.line + number, start, gone, come, text)


def _site(example: _Replacement, line: int, snapshot: Snapshot) -> EditSite | None:
    """The replacement in a line; None if other tokens stand there."""
    at = snapshot.source.offset_at(line, 0)
    text, _ = snapshot.line_at(at)
    count = len(example.old)
    if tuple(_TOKEN.findall(text)[example.start : example.start + count]) != example.old:
        return None
    span = _span(text, example.start, count)
    return EditSite(at + span.start, text[span], example.text)


def _span(line: str, start: int, count: int) -> slice:
    """Where so many tokens from one on are in a line."""
    found = list(_TOKEN.finditer(line))[start : start + count]
    return slice(found[0].start(), found[-1].end())
