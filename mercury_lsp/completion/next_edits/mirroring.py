"""Makes the changes of a line again in lines like it, with other names: an edit by example.

    -        now = datetime.utcnow()                        -    if (row.expires < datetime.utcnow())
    +        now = datetime.now(timezone.utc)     so        +    if (row.expires < datetime.now(timezone.utc))

A pattern is cut from the first pair. It spans what changed, to whole strings and closed brackets. Names on both sides
of the change may be others elsewhere, and what was removed must stand there. Where nothing was removed that one could
look for, the whole line must have the shape of the changed one.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from mercury_engine.places.candidates import KEYWORDS

from mercury_lsp.completion.next_edits.edit_sites import SEARCH_REACH_CHARS, EditSite, below_first
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language

HUNKS_MIRRORED = 4
"""Latest hunks whose changes are made again."""

MAX_HUNK_LINES = 12
"""Lines of the old or new side of a hunk that is taken for an example."""

MAX_LINE_CHARS = 300

MAX_SITES = 8

"""Characters on either side of the example that are searched."""

NEAR_LINES = 60
"""Lines on either side of the example in which lines of the same shape are looked for."""

MIN_ALIKE = 0.5
"""Least share of words that a line of the same shape has in common with the example."""

_TOKEN = re.compile(r"[^\W\d]\w*|\d+(?:\.\d+)*\w*|[ \t]+|.")
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"\d")
_OF_BODIES = frozenset({"async", "suspend"})
_COMMENTS = ("#", "//", "/*", "*", "--", '"""')
_QUOTES = "\"'`"
_PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """What to look for, with groups for names that may differ, and what replaces it."""

    regex: re.Pattern[str]
    template: tuple[str | int, ...]
    """Text, and numbers of names that may differ (group `h0` is number 0)."""
    is_of_line: bool
    """It describes a whole line, to be looked for near the example only."""
    words: tuple[str, ...] = ()
    """The example's texts of the groups."""

    @property
    def key(self) -> tuple[str, tuple[str | int, ...]]:
        return self.regex.pattern, self.template

    def rewritten(self, found: re.Match[str]) -> str:
        """The new text at a match."""
        return "".join(part if isinstance(part, str) else found[f"h{part}"] for part in self.template)


@dataclass(frozen=True, slots=True)
class Mirrored:
    """Sites of a pattern, and how often the user has made the change by hand."""

    hunk: Hunk
    sites: tuple[EditSite, ...]
    examples: int


def mirrored(hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[Mirrored]:
    """The sites in a document of the changes in the latest hunks, newest first; hunks come oldest first.

    A change made once is repeated in its own document only.
    """
    latest = [each for each in hunks[-HUNKS_MIRRORED:] if each.language_id == snapshot.language_id]
    found = [(hunk, pattern) for hunk in reversed(latest) for pattern in patterns(hunk)]
    counts: dict[tuple[str, tuple[str | int, ...]], int] = {}
    for _, pattern in found:
        counts[pattern.key] = counts.get(pattern.key, 0) + 1
    seen: set[object] = set()
    own = [hunk for hunk in hunks if hunk.uri == snapshot.uri]
    for hunk, pattern in found:
        is_once = counts[pattern.key] == 1
        is_elsewhere = hunk.uri != snapshot.uri
        if pattern.key in seen or (is_once and (is_elsewhere or hunk is not latest[-1])):
            continue
        if pattern.is_of_line and is_elsewhere:
            continue
        seen.add(pattern.key)
        if sites := tuple(_sites(pattern, hunk, own, snapshot)):
            yield Mirrored(hunk, sites, counts[pattern.key])


def patterns(hunk: Hunk) -> Iterator[Pattern]:
    """The patterns of a hunk's changed lines."""
    before, after = hunk.before_lines, hunk.after_lines
    if len(before) > MAX_HUNK_LINES or len(after) > MAX_HUNK_LINES:
        return
    for old, new in paired(before, after):
        old, new = old.strip(), new.strip()
        is_comment = new.startswith(_COMMENTS) or old.startswith(_COMMENTS)
        if max(len(old), len(new)) <= MAX_LINE_CHARS and old.split() != new.split() and not is_comment:
            pattern = _pattern(old, new, hunk.language_id)
            if pattern is not None:
                yield pattern


def paired(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Old lines with the new ones that they became."""
    matcher = SequenceMatcher(None, [line.strip() for line in before], [line.strip() for line in after], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "replace" and b - a == d - c:
            yield from zip(before[a:b], after[c:d], strict=True)
        elif kind == "replace":
            yield from _most_alike(before[a:b], after[c:d])


def _most_alike(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str]]:
    left = list(after)
    for old in before:
        if not left:
            return
        alike = [
            SequenceMatcher(None, _TOKEN.findall(old), _TOKEN.findall(new), autojunk=False).ratio() for new in left
        ]
        best = max(range(len(left)), key=alike.__getitem__)
        if alike[best] > 0.6:
            yield old, left[best]
            del left[: best + 1]


@lru_cache(64)
def _pattern(old: str, new: str, language_id: str) -> Pattern | None:
    """The pattern of a changed line without its indentation; None if it is no example for others."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    changed = [code for code in codes if code[0] != "equal"]
    start, end = changed[0][1], changed[-1][2]
    tail = len(before) - end
    mark = language(language_id).marks.line("").strip()
    if mark and mark in "".join(after[start : len(after) - tail]):
        return None  # a comment, or code commented out
    start, end = _closed(before, after, start, end)
    tail = len(before) - end
    core, fresh = before[start:end], after[start : len(after) - tail]
    if _OF_BODIES & {*fresh} - {*core}:
        return None  # what it needs is in the function's body, which is another one elsewhere
    if not fresh or (_is_single_name(core) and _is_single_name(fresh)):
        return None  # perhaps being retyped; a renaming, or another name
    if _has_anchor(core, fresh):
        return _of_core(core, fresh)
    return _of_line(before, after, start, end)


def _closed(before: Sequence[str], after: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """The changed tokens of a line, extended until strings are whole and brackets closed on both sides."""
    while start > 0 and sum(token in _QUOTES for token in before[:start]) % 2:
        start -= 1
    while end < len(before) and sum(token in _QUOTES for token in before[end:]) % 2:
        end += 1
    for _ in range(len(before)):
        sides = before[start:end], after[start : len(after) - (len(before) - end)]
        opened = max(_open(side)[0] for side in sides)
        closing = max(_open(side)[1] for side in sides)
        if opened > 0 and end < len(before):
            end += 1
        elif closing > 0 and start > 0:
            start -= 1
        else:
            break
    return start, end


def _open(tokens: Sequence[str]) -> tuple[int, int]:
    """Brackets that are not closed, and closing ones without an opening one."""
    depth = closing = 0
    for token in tokens:
        if token in _PAIRS:
            depth += 1
        elif token in _PAIRS.values():
            depth, closing = (depth - 1, closing) if depth else (0, closing + 1)
    return depth, closing


def _has_anchor(core: Sequence[str], fresh: Sequence[str]) -> bool:
    """Whether the old text has something to look for: a word that went, a whole string, or a telling number."""
    removed = {token for token in core if _is_name(token)} - set(fresh) - KEYWORDS
    if any(len(word) > 2 for word in removed):
        return True
    text = "".join(core)
    if len(text) > 4 and text[0] in _QUOTES and text[-1] == text[0]:
        return True
    numbers = {token for token in core if _NUMBER.match(token)} - set(fresh)
    return len(core) == 1 and any(len(number) > 3 for number in numbers)


def _of_core(core: Sequence[str], fresh: Sequence[str]) -> Pattern:
    """A pattern whose names may differ if they are on both sides; what was removed must be there."""
    names = [token for token in dict.fromkeys(core) if _is_name(token) and token in fresh and token not in KEYWORDS]
    holes = [] if core[0] in _QUOTES else names
    text = "".join(_piece(token, core[:at], holes) for at, token in enumerate(core))
    first, last = (r"(?<![\w.])" if core[0][0].isalnum() else ""), (r"(?!\w)" if core[-1][-1].isalnum() else "")
    template = tuple(holes.index(token) if token in holes else token for token in fresh)
    return Pattern(re.compile(first + text + last), template, is_of_line=False, words=tuple(holes))


def _of_line(before: Sequence[str], after: Sequence[str], start: int, end: int) -> Pattern | None:
    """A pattern of whole lines: names may be others but for those beside the change."""
    beside = {_nearest(before[:start][::-1]), _nearest(before[end:])}
    names = [token for token in dict.fromkeys(before) if _is_name(token) and token not in KEYWORDS]
    holes = [token for token in names if token not in beside]
    if len(names) < 2 or not holes:
        return None
    text = "".join(_piece(token, before[:at], holes) for at, token in enumerate(before))
    template = tuple(holes.index(token) if token in holes else token for token in after)
    return Pattern(re.compile(rf"(?m)^[ \t]*(?P<line>{text})[ \t]*$"), template, True, tuple(holes))


def _nearest(tokens: Sequence[str]) -> str:
    return next((token for token in tokens if not token.isspace()), "")


def _piece(token: str, before: Sequence[str], holes: Sequence[str]) -> str:
    if token.isspace():
        return r"[ \t]+"
    if token not in holes:
        return re.escape(token)
    name = f"h{holes.index(token)}"
    return f"(?P={name})" if token in before else rf"(?P<{name}>[^\W\d]\w*)"


def _is_name(token: str) -> bool:
    return bool(_NAME.fullmatch(token))


def _is_single_name(tokens: Sequence[str]) -> bool:
    return len(tokens) == 1 and _is_name(tokens[0])


def _sites(pattern: Pattern, hunk: Hunk, own: Sequence[Hunk], snapshot: Snapshot) -> Iterator[EditSite]:
    """The matches outside of changed lines, those below the example first."""
    source = snapshot.source
    at = hunk.offset_in(snapshot)
    if pattern.is_of_line:
        first = source.offset_at(max(0, hunk.line - NEAR_LINES), 0)
        last = source.offset_at(hunk.end_line + NEAR_LINES, 0)
    else:
        first, last = max(0, at - SEARCH_REACH_CHARS), at + SEARCH_REACH_CHARS
    text = snapshot.slice(first, last)
    sites: list[EditSite] = []
    for found in pattern.regex.finditer(text):
        start, end = found.span("line" if pattern.is_of_line else 0)
        line = source.line_of(first + start)
        if any(each.covers(line) for each in own):
            continue
        if pattern.is_of_line and not _is_alike(pattern, found):
            continue
        old, new = text[start:end], pattern.rewritten(found)
        if old != new and not _is_made(text, start, old, new):
            sites.append(EditSite(first + start, old, new))
    yield from below_first(sites, at)[:MAX_SITES]


def _is_made(text: str, start: int, old: str, new: str) -> bool:
    """Whether the old text is part of the new one already."""
    places = (start - found.start() for found in re.finditer(f"(?={re.escape(old)})", new))
    return any(place >= 0 and text.startswith(new, place) for place in places)


def _is_alike(pattern: Pattern, found: re.Match[str]) -> bool:
    """Whether enough words of a line are those of the example."""
    words = _NAME.findall(found["line"])
    changed = {found[f"h{number}"] for number in range(len(pattern.words))} - set(pattern.words)
    return sum(word not in changed for word in words) >= MIN_ALIKE * len(words)
