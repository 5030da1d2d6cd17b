"""Adds what the user added beside one item wherever that item is listed: a field's assignment, its line in a print-out.

    +    private final String tariff;      beside `gateway`, so      this.gateway = gateway;
                                                                +    this.tariff = tariff;

Only a line or an element whose text follows from the names is added: with values of its own it would be a guess.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice

from mercury_engine.places.candidates import KEYWORDS

from mercury_lsp.completion.next_edits.edit_sites import EditSite, below_first, text_around
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.items import COMMENTS, NAME, is_whole, kind, lists_on, names_apart, shape, tokens
from mercury_lsp.completion.next_edits.name_styles import in_every_style
from mercury_lsp.completion.next_edits.parameters import parameters_around
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.languages import language

HUNKS_FOLLOWED = 4
MAX_ADDED_LINES = 2
"""Lines added at one place that are taken for items of a list."""

LIST_LINES = 4
"""Lines on either side of an added one that may be items of the same list."""

MAX_SITES = 4
MAX_LINE_CHARS = 300
MADE_WITHIN_LINES = 6
"""Lines around an item in which its new sibling may stand already."""

_NEUTRAL = KEYWORDS | {"0", "0.0", '""', "''", "yes", "no", "Default", "default", "Some", "String"}
_SHORTHANDS = ("javascript", "javascriptreact", "rust", "typescript", "typescriptreact")
"""Languages in which a field may be given by its name alone."""


@dataclass(frozen=True, slots=True)
class Addition:
    """An item that the user added beside another one: their names, in every style, and the side."""

    hunk: Hunk
    names: dict[str, str]
    others: frozenset[str]
    """Names of further items of that list, in every style."""
    is_below: bool

    def renamed(self, text: str) -> str:
        """The text of the older item as that of the new one."""
        return self.regex.sub(lambda found: self.names[found[0]], text)

    @property
    def regex(self) -> re.Pattern[str]:
        """Any name of the older item."""
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, self.names))})(?!\w)")

    @property
    def is_new(self) -> re.Pattern[str]:
        """Any name of the new item."""
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, self.names.values()))})(?!\w)")


def additions(hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[Addition]:
    """The items that the latest hunks of a document added, newest first; hunks come oldest first."""
    own = [each for each in hunks if each.uri == snapshot.uri]
    for hunk in reversed(own[-HUNKS_FOLLOWED:]):
        before, after = ([line.strip() for line in lines] for lines in (hunk.before_lines, hunk.after_lines))
        for change, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if change == "insert" and d - c <= MAX_ADDED_LINES:
                above, below = range(c - 1, c - 1 - LIST_LINES, -1), range(d, d + LIST_LINES)
                around = [_line(snapshot, hunk.line + number).strip() for number in (*above, *below)]
                for line in after[c:d]:
                    yield from islice(_beside(hunk, line, around, snapshot, own), 1)
            elif change == "replace" and b - a == d - c == 1:
                yield from islice(_within(hunk, before[a], after[c], snapshot, own), 1)


def sibling_sites(addition: Addition, hunks: Sequence[Hunk], snapshot: Snapshot) -> Iterator[EditSite]:
    """Where the new item is missing, those below the change first."""
    source = snapshot.source
    at = addition.hunk.offset_in(snapshot)
    first, text = text_around(at, snapshot)
    own = [each for each in hunks if each.uri == snapshot.uri]
    seen: set[int] = set()
    sites: list[EditSite] = []
    for found in addition.regex.finditer(text):
        number = source.line_of(first + found.start())
        if number in seen:
            continue
        seen.add(number)
        if any(each.covers(number) for each in own):
            continue
        is_beside = any(each.line - 1 <= number <= each.end_line for each in own)
        if (site := _missing(addition, number, snapshot, is_beside)) is not None:
            sites.append(site)
    yield from below_first(sites, at)[:MAX_SITES]


def _beside(
    hunk: Hunk, line: str, around: Sequence[str], snapshot: Snapshot, own: Sequence[Hunk]
) -> Iterator[Addition]:
    """The item that a new line is, beside the line above it or below it; `around` goes up from it, then down."""
    for at, is_below in ((0, True), (LIST_LINES, False)):
        for names in names_apart(around[at], line):
            if _is_new(names[1], snapshot, own):
                yield Addition(hunk, in_every_style(*names), _others(around[at], names[0], around), is_below)


def _others(item: str, name: str, around: Sequence[str]) -> frozenset[str]:
    """The names of items like this one."""
    pairs = (pair for other in around for pair in names_apart(item, other) if pair[0] == name)
    return frozenset(style for pair in pairs for style in in_every_style(*pair).values())


def _within(hunk: Hunk, before: str, after: str, snapshot: Snapshot, own: Sequence[Hunk]) -> Iterator[Addition]:
    """The item that was added to a list on one line."""
    old = {text for _, each in lists_on(before) for _, _, text in each}
    for _, each in lists_on(after):
        fresh = [number for number, (_, _, text) in enumerate(each) if text not in old]
        if len(fresh) != 1 or len(each) < 2:
            continue
        [number] = fresh
        for other, is_below in ((number - 1, True), (number + 1, False)):
            if 0 <= other < len(each):
                item, others = each[other][2], [text for n, (_, _, text) in enumerate(each) if n not in (other, number)]
                for names in names_apart(item, each[number][2]):
                    if _is_new(names[1], snapshot, own):
                        yield Addition(hunk, in_every_style(*names), _others(item, names[0], others), is_below)


def _is_new(name: str, snapshot: Snapshot, own: Sequence[Hunk]) -> bool:
    """Whether only the user's changes have a name."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    source = snapshot.source
    first, text = text_around(own[-1].offset_in(snapshot) if own else 0, snapshot)
    for found in pattern.finditer(text):
        line = source.line_of(first + found.start())
        if not any(each.line <= line < each.end_line for each in own):
            return False
    return True


def _missing(addition: Addition, number: int, snapshot: Snapshot, is_beside: bool) -> EditSite | None:
    """The new item beside an older one in a line; None if it is there, or would be a guess.

    `is_beside`: the line is next to a change, so that a new line would only continue it.
    """
    line = _line(snapshot, number)
    bare = line.strip()
    if len(line) > MAX_LINE_CHARS or bare.startswith((*COMMENTS, *_imports(snapshot))):
        return None
    if addition.is_new.search(line):
        return None
    start = snapshot.source.offset_at(number, 0)
    if not is_beside and is_whole(bare) and _follows(bare, addition) and _is_listed(addition, number, snapshot):
        near = range(number - MADE_WITHIN_LINES, number + MADE_WITHIN_LINES + 1)
        text = addition.renamed(line)
        if any(_line(snapshot, other).strip() == text.strip() for other in near):
            return None
        return EditSite(snapshot.source.offset_at(number + addition.is_below, 0), "", f"{text}\n")
    for opening, elements in lists_on(line):
        if opening == "(":
            continue  # a call takes what its function declares
        if (site := _element(addition, elements, start)) is not None:
            return site
        if (site := _field(addition, elements, start, snapshot)) is not None:
            return site
    return None


def _element(addition: Addition, elements: Sequence[tuple[int, int, str]], line_start: int) -> EditSite | None:
    """The new element beside an older one in a list of like ones."""
    for number, (start, end, text) in enumerate(elements):
        others = [other for n, (_, _, other) in enumerate(elements) if n != number]
        if not addition.regex.search(text) or not _follows(text, addition):
            continue
        is_string = text[:1] in "\"'"
        if not is_string and not addition.regex.fullmatch(text.partition(":")[0].strip()):
            continue
        if any(shape(other) == shape(text) and _has_other(other, addition) for other in others):
            new = addition.renamed(text)
            return _inserted(addition, line_start, start, end, new)
    return None


def _inserted(addition: Addition, line_start: int, start: int, end: int, text: str) -> EditSite:
    """A new element beside the one at [start, end) of a line."""
    if addition.is_below:
        return EditSite(line_start + end, "", f", {text}")
    return EditSite(line_start + start, "", f"{text}, ")


def _field(
    addition: Addition, elements: Sequence[tuple[int, int, str]], line_start: int, snapshot: Snapshot
) -> EditSite | None:
    """The new field in a literal of a function that has a parameter of that name."""
    keys = [text.partition(":")[0].strip() for _, _, text in elements]
    at = next((n for n, key in enumerate(keys) if addition.regex.fullmatch(key)), None)
    if at is None or sum(key in addition.others for key in keys) < min(1, len(keys) - 1):
        return None
    if not any(":" in text for _, _, text in elements):
        return None
    parameters = parameters_around(snapshot, line_start + elements[0][0])
    field = addition.renamed(keys[at])
    value = next((name for name in dict.fromkeys(addition.names.values()) if name in parameters), None)
    if value is None:
        return None
    text = field if field == value and snapshot.language_id in _SHORTHANDS else f"{field}: {value}"
    start, end, _ = elements[at]
    return _inserted(addition, line_start, start, end, text)


def _has_other(text: str, addition: Addition) -> bool:
    """Whether a text is about a further item of the list."""
    return any(word in addition.others for word in re.findall(r"[\w-]+|\w+", text) + NAME.findall(text))


def _follows(text: str, addition: Addition) -> bool:
    """Whether a text has no values but those that follow from the names."""
    values = (token for token in tokens(text) if kind(token) in ("s", "0"))
    return all(token in _NEUTRAL or addition.regex.search(token) for token in values)


def _is_listed(addition: Addition, number: int, snapshot: Snapshot) -> bool:
    """Whether a line is in a list of like lines, or says nothing but the names."""
    bare = _line(snapshot, number).strip()
    own = shape(bare)
    for other in (_line(snapshot, number - 1).strip(), _line(snapshot, number + 1).strip()):
        if shape(other) == own and _has_other(other, addition):
            return True
    words = [token for token in tokens(bare) if kind(token) == "n"]
    is_bare = all(addition.regex.search(word) or word in ("self", "this") for word in words)
    return len(words) > 1 and is_bare


def _line(snapshot: Snapshot, number: int) -> str:
    if number < 0:
        return ""
    start, end = snapshot.source.line_bounds(snapshot.source.offset_at(number, 0))
    return snapshot.slice(start, end)


def _imports(snapshot: Snapshot) -> tuple[str, ...]:
    return language(snapshot.language_id).import_words or ("\0",)
