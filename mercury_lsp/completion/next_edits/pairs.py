"""Repeats a change that the user has made twice where the same text occurs: a replacement, removal or insertion.

    -var a = 1;        +const a = 1;
    -var b = 2;        +const b = 2;        so        -var c = 3;        +const c = 3;

Both examples replace the same text by the same, or insert it beside the same lines. If the text is too short to be
searched for alone, what surrounds both examples must surround the next place, too. One example says too little.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from textwrap import indent

from mercury_engine.text.common_prefix import common_prefix
from mercury_engine.text.lines import lines_of

from mercury_lsp.completion.next_edits.edits import below_first, near, text_around
from mercury_lsp.completion.next_edits.examples import EXAMPLES, TOKEN, Example, examples, margin, nearest
from mercury_lsp.completion.next_edits.history import Hunk
from mercury_lsp.completion.next_edits.templates import template_edits
from mercury_lsp.context.scope import path_to
from mercury_lsp.documents.document import Edit, Snapshot
from mercury_lsp.documents.languages import language

MIN_CHARS = 5
"""Shortest text that is searched for, without blanks: shorter ones occur everywhere."""

ANCHOR_LINES = 3
"""Lines on either side of an insertion that must equal those of the examples, as far as these agree; the end of a
document counts as a blank line."""

TEMPLATE_LINES = 4
"""Number of latest lines compared in pairs, at 0.1 to 0.2 ms each, in every open document; 16 find no more."""

ANCHOR_TOKENS = 8
"""Tokens on either side of an insertion that must equal those of the examples, as far as these agree."""

REACH_LINES, REACH_STEPS = 40, 8
"""An edit is offered automatically within so many lines, or so many times the distance between the examples."""

MAX_SITES = 8
MAX_SITES_ELSEWHERE = 3
"""Most places in another document; if a text occurs more often, it is unclear which are meant."""

_NUMBER = re.compile(r"(?<![\w.'\"-])\d+(?![\w'\"-])")
"""Lines with new numbers are data: twice the same by chance, and different the third time."""
_NAME = re.compile(r"[^\W\d]\w*")
_MEMBER = re.compile(r"(?:\.|::|(?<!\))->)\Z")
"""Text before a member's name; after parameters, `->` precedes a type."""
_BLANKS = r"[ \t]*"


def paired_edits(
    hunks: Sequence[Hunk], snapshot: Snapshot, origin: Snapshot, invoked: bool = False
) -> Iterator[tuple[Hunk, Edit]]:
    """The next places, in a document, of a change made twice, each with the later example; the nearest below first.

    Hunks come oldest first; `origin` is the latest one's document. Places of another kind than the example's (code,
    comment, string) are left out. So are strings of programs, except in lines changed alike: the same word in another
    string mostly means something else. Unless the user asks (`invoked`), so are places that they passed between the
    examples, far places, and texts that occur often in another document.
    """
    latest = _latest(hunks) if snapshot.is_parsed and origin.is_parsed else []
    own, known = [each for each in hunks if each.uri == snapshot.uri], set[int]()
    if (rest := rest_of_lines(hunks, snapshot)) is not None:
        yield hunks[-1], rest
    for first, last, found in _found(latest, own, snapshot, origin, invoked):
        if not invoked and snapshot.uri != last.hunk.uri and len(found) > MAX_SITES_ELSEWHERE:
            continue
        kind = _kind(last, origin)
        sites = below_first(found, last.hunk.offset_in(snapshot))
        if not invoked and first.hunk.uri == last.hunk.uri == snapshot.uri:
            sites = _ahead(sites, first, last, snapshot)
        alike = (each for each in sites if quoted_as(snapshot, each.start) == kind)
        for site in islice(alike, MAX_SITES):
            if snapshot.source.line_of(site.start) not in known:
                yield last.hunk, site
        known.update(snapshot.source.line_of(site.start) for site in sites)


def _found(
    latest: Sequence[Example], own: Sequence[Hunk], snapshot: Snapshot, origin: Snapshot, invoked: bool
) -> Iterator[tuple[Example, Example, Sequence[Edit]]]:
    """Pairs of examples of the last change, each with its sites: equal texts first, then lines changed alike."""
    seen: set[object] = set()
    for last, earlier in _of_last_change(latest):
        twin = next((each for each in earlier if each.key == last.key), None)
        if twin is None or last.key in seen:
            continue
        seen.add(last.key)
        if last.column is None:
            yield twin, last, _left(_same_lines(twin, last, snapshot), own, snapshot)
        elif _kind(last, origin) != "string" or not language(origin.language_id).definitions:
            yield twin, last, _left(_same_texts(twin, last, snapshot, invoked), own, snapshot)
    lines = {(each.hunk, each.line, each.column is None): each for each in latest}
    for last, earlier in _of_last_change([*lines.values()][-TEMPLATE_LINES:]):
        for twin in earlier if last.column is not None else ():
            if found := _left(template_edits(twin, last, snapshot), own, snapshot):
                yield twin, last, found
                break


def _of_last_change(latest: Sequence[Example]) -> Iterator[tuple[Example, Sequence[Example]]]:
    """The examples of the last change, each with those before it; the latest first."""
    for number, last in reversed([*enumerate(latest)]):
        if last.hunk == latest[-1].hunk:
            yield last, latest[:number][::-1]


def _kind(example: Example, origin: Snapshot) -> str:
    """Whether a change was made in a comment, a string, or code; see `quoted_as`."""
    return quoted_as(origin, origin.source.offset_at(example.line, 0) + (example.column or 0))


def quoted_as(snapshot: Snapshot, offset: int) -> str:
    """`comment` or `string` if an offset is within one; empty for code, and without a tree."""
    if snapshot.tree is None or not snapshot.is_parsed:
        return ""
    rules = language(snapshot.language_id)
    for node in reversed(path_to(snapshot.tree, snapshot.source.byte_of(offset))):
        if node.type in rules.embedded or node.type in rules.bodies:
            return ""
        if node.type in rules.strings or node.type in rules.comments:
            return "string" if node.type in rules.strings else "comment"
    return ""


def _ahead(sites: Sequence[Edit], first: Example, last: Example, snapshot: Snapshot) -> list[Edit]:
    """The near sites below the last example if it is below the first one, or else those above it."""
    is_down, reach = last.line >= first.line, max(REACH_LINES, REACH_STEPS * abs(last.line - first.line))
    lines = [snapshot.source.line_of(each.start) - last.line for each in sites]
    return [each for each, by in zip(sites, lines, strict=True) if by == 0 or ((by > 0) == is_down and abs(by) < reach)]


def _latest(hunks: Sequence[Hunk]) -> list[Example]:
    """The examples of the latest hunks, oldest first."""
    return [each for hunk in hunks[-EXAMPLES:] for each in examples(hunk)]


def rest_of_lines(hunks: Sequence[Hunk], snapshot: Snapshot) -> Edit | None:
    """The rest of lines that the user inserted twice and now begins again."""
    latest = _latest(hunks)
    last = latest[-1] if latest else None
    if last is None or last.hunk.uri != snapshot.uri or last.old or last.column is not None:
        return None
    texts = [each.new for each in latest[:-1] if each.key == ("", each.new, True)]
    begun = last.new.rstrip()
    whole = next((text for text in reversed(texts) if text.startswith(begun) and texts.count(text) > 1), "").rstrip()
    if len(begun) < MIN_CHARS or len(whole) <= len(begun):
        return None
    text, start = snapshot.line_at(snapshot.source.offset_at(last.line + begun.count("\n"), 0))
    blanks = last.margins[1]
    return Edit(start + len(text.rstrip()), "", indent(whole, blanks)[len(indent(begun, blanks)) :])


def _same_lines(first: Example, second: Example, snapshot: Snapshot) -> Iterator[Edit]:
    """The same lines; for an insertion, the places between the same lines, with the example's indentation."""
    old, (before, after) = [line.strip() for line in lines_of(second.old)], second.around(first)
    before, after = ([], []) if old else (before[-ANCHOR_LINES:], after[:ANCHOR_LINES])
    wanted = before + old + after
    is_data = not {*_NUMBER.findall(second.new)} <= {*_NUMBER.findall(second.old)}
    if is_data or len("".join("".join(wanted).split())) < MIN_CHARS:
        return
    here = second.hunk.offset_in(snapshot)
    start, text = text_around(here, snapshot)
    lines = lines_of(text)
    bare, starts = [*map(str.strip, lines), ""], [*accumulate(map(len, lines), initial=start)]
    firsts = (number for number, line in enumerate(bare) if line == wanted[0])
    found = [number for number in firsts if bare[number : number + len(wanted)] == wanted]
    for number in found[near([starts[each] for each in found], here)]:
        at, end = number + len(before), number + len(before) + len(old)
        blanks = margin(lines[at:end]) if old else _margin_between(second, lines, at)
        yield _line_edit(starts[at], lines[at:end], indent(second.new, blanks), lines[end - 1] if end else "\n")


def _margin_between(example: Example, lines: Sequence[str], at: int) -> str:
    """The indentation of lines inserted at a line: relative to the lines above and below as in the example.

    If both lines agree in the example, and not here, the line below decides, unless it begins with a closing bracket.
    """
    above, own, below = example.margins
    over, under = nearest(lines[:at][::-1]), nearest(lines[at:])
    ends = not under or under.lstrip()[0] in ")]}"
    if own == below and not (own == above and ends):
        return margin([under])
    return margin([over]) + own[len(above) :] if own.startswith(above) else margin([under])


def _line_edit(start: int, old: Sequence[str], new: str, last: str) -> Edit:
    """The edit that replaces lines; `last` is their last line, or the one before an insertion, and may lack a break."""
    if last.endswith("\n"):
        return Edit(start, "".join(old), new)
    bare = new.removesuffix("\n").removesuffix("\r")
    return Edit(start, "".join(old), bare if old else new[len(bare) :] + bare)


def _same_texts(first: Example, second: Example, snapshot: Snapshot, invoked: bool) -> Iterator[Edit]:
    """The same text within lines, with what surrounds both examples if it is too short to be searched for alone.

    Unless the user asks, half of what surrounds both examples must surround it. A plain name is no member.
    """
    tokens, (left, right), (before, after) = TOKEN.findall(second.old), _anchor(first, second), second.around(first)
    if not (tokens or left) or len("".join((*left, *tokens, *right))) < MIN_CHARS:
        return
    is_plain = _NAME.fullmatch(second.old) and not any(_MEMBER.search("".join(each.before)) for each in (first, second))
    here = second.hunk.offset_in(snapshot)
    start, text = text_around(here, snapshot)
    every = [*re.finditer(_pattern(left, tokens, right, second.old), text)]
    for found in every[near([start + each.start() for each in every], here)]:
        edit = Edit(start + found.start("old"), found["old"], second.new)
        line, at = snapshot.line_at(edit.start)
        ours, theirs = TOKEN.findall(line[: edit.start - at]), TOKEN.findall(line[edit.end - at :])
        same = common_prefix(ours[::-1], before[::-1]) + common_prefix(theirs, after)
        is_like = invoked or 2 * same >= len(before) + len(after)
        if is_like and not (is_plain and _MEMBER.search("".join(ours))):
            yield edit


def _anchor(first: Example, second: Example) -> tuple[list[str], list[str]]:
    """The tokens before and after both examples to search for as well; none if the text alone is long enough."""
    tokens, (before, after) = TOKEN.findall(second.old), second.around(first)
    for count in range(max(len(before), len(after)) + 1):
        left, right = before[len(before) - count :] if count < len(before) else before, after[:count]
        if len("".join((*left, *tokens, *right))) >= MIN_CHARS and (tokens or count >= ANCHOR_TOKENS):
            return left, right
    return before, after


def _pattern(left: Sequence[str], tokens: Sequence[str], right: Sequence[str], old: str) -> str:
    """A regular expression for the text, with the group `old` to replace; blanks between tokens don't matter."""
    head, middle, tail = (_BLANKS.join(map(re.escape, part)) for part in (left, tokens, right))
    if not tokens:
        middle = f"(?P<old>{_BLANKS})"
    else:
        before, after = (_BLANKS if old != stripped else "" for stripped in (old.lstrip(), old.rstrip()))
        middle = f"{_BLANKS if left else ''}(?P<old>{before}{middle}{after}){_BLANKS if right else ''}"
    every = [*left, *tokens, *right]
    starts, ends = re.match(r"\w", every[0]), re.match(r"\w", every[-1])
    return (r"(?<!\w)" if starts else "") + head + middle + tail + (r"(?!\w)" if ends else "")


def _left(sites: Iterator[Edit], own: Sequence[Hunk], snapshot: Snapshot) -> list[Edit]:
    """The sites that change something, outside the lines that the user changed."""
    changing = (each for each in sites if each.removed != each.inserted)
    return [each for each in changing if not any(hunk.covers(snapshot.source.line_of(each.start)) for hunk in own)]
