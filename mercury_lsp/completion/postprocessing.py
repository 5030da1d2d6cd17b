"""Fits a fill to the text around it: no repeated suffix, doubled brackets, random characters or trailing blanks.

A requested text also ends before what the document already has: an import, a key, an item of a list. These are found by
lines, words and indentation only.
"""

import re
from collections import Counter
from collections.abc import Iterable

from mercury_engine.text.brackets import (
    CLOSER_OF,
    CLOSING,
    OPENER_OF,
    OPENING,
    QUOTES,
    code_outside_strings,
    outside_strings,
)
from mercury_engine.text.ends import overrun
from mercury_engine.text.lines import indent_of

from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.document import Snapshot
from mercury_lsp.documents.secret_text.values import start_of_random

_BREAK = re.compile(r"\r\n|\r|\n")
_ONLY_CLOSING = re.compile(r"[)\]};,\s]*[)\]}][)\]};,\s]*")
_CONDITION = re.compile(r"\s*(?:\}?\s*else\s+)?(?:if|for|while)\s*\(")
_BELOW_CHARS = 2000
"""Characters after the cursor that are searched for lines that a fill must not repeat."""

_COMMAS_ONLY_SEPARATE = frozenset(("json", "jsonc"))
"""Languages without a comma after the last item."""

SEARCHED_CHARS = 100_000
"""Characters on either side of the cursor that are searched."""

_IMPORT = re.compile(r"(?:import|from|use|using)\s|#\s*include\b|(?:const|let|var)\b.*\brequire\(")
_FROM = re.compile(r"from\s+(\S+)\s+import\s+\(?([^#]+)")
_DEFINED = r"\b(?:class|def|enum|func|fn|function|interface|struct|trait|type)\s+(?:{})\b"
_WORD = re.compile(r"[^\W\d]\w*")
_KEY = re.compile(r"""((["']).*?\2|[^\W\d][\w-]*)\s*:(?!:)""")


def postprocess(fill_text: str, context: CompletionContext, snapshot: Snapshot) -> str:
    """The part of a fill worth showing; empty if there is none. `snapshot` is the version of the context."""
    if not context.line_prefix and context.line_suffix.lstrip().startswith(tuple(CLOSING)):
        return ""  # nobody writes in front of a line that closes something
    text = fill_text if context.multiline else _BREAK.split(fill_text, maxsplit=1)[0]
    text = without_random_text(text, context.line_prefix)
    if context.line_suffix.strip():
        text = without_overlap(text, context.line_suffix)
        text = without_doubled_closers(text, context.line_prefix, context.line_suffix)
        text = with_closers(text, context.line_prefix, context.line_suffix)
    else:
        following = snapshot.slice(context.offset, context.offset + _BELOW_CHARS)
        text = text[: overrun(text, context.line_prefix, following)]
        text = without_needless_brace(text, context.line_prefix, following)
        text = closed_data(text, context.language_id)
    return without_last_comma(without_trailing_blanks(text, context.line_suffix), context.offset, snapshot)


def closed_data(text: str, language_id: str) -> str:
    """Close what a JSON text opens: its end was cut off because the same mark stands below."""
    closers = _closers(text) if language_id in _COMMAS_ONLY_SEPARATE else ""
    return text.rstrip() + closers if closers else text


def without_needless_brace(text: str, line_prefix: str, following: str) -> str:
    """Drop the brace after a condition if the body below ends without one.

    `following` begins behind the cursor, at the end of its line.
    """
    if not text.endswith("{") or not _CONDITION.match(line_prefix + text):
        return text
    below = [line for line in _BREAK.split(following)[1:-1] if line.strip() and not line.startswith("#")]
    end = next((at for at, line in enumerate(below) if indent_of(line) <= indent_of(line_prefix)), 0)
    body, next_line = "".join(below[:end]), below[end] if end else ""
    is_label, is_closed = next_line.rstrip().endswith(":"), body.count("}") > body.count("{")
    if not body or is_label or is_closed or next_line.lstrip().startswith(tuple(CLOSING)):
        return text
    return text[:-1].rstrip()


def without_random_text(text: str, line_prefix: str) -> str:
    """Drop the first line with random characters, such as a key, and all lines below: no model should invent them."""
    at = start_of_random(text, line_prefix)
    return text if at is None else text[: max(0, text.rfind("\n", 0, at))]


def without_overlap(text: str, line_suffix: str) -> str:
    """Drop the longest tail that repeats the start of the line's suffix, unless that leaves the text unbalanced.

    A tail of closing brackets alone is left to `without_doubled_closers`, which counts them.
    """
    for size in range(min(len(text), len(line_suffix)), 0, -1):
        if not text.endswith(line_suffix[:size]) or _ONLY_CLOSING.fullmatch(line_suffix[:size]):
            continue
        if _unclosed(text[:-size]) <= _unclosed(text):
            return text[:-size]
    return text


def without_doubled_closers(text: str, line_prefix: str, line_suffix: str) -> str:
    """Drop closing brackets from the tail that have no opening bracket left after those of the line's suffix."""
    in_prefix, _, quote = _scan(line_prefix)
    quote = quote if quote and quote in text else ""  # else it may be an apostrophe
    _, surplus, quote = _scan(text, quote)
    opened = Counter(in_prefix)
    closed_later = Counter(line_suffix[index] for index in _scan(line_suffix, quote)[1])
    while surplus:
        index = surplus.pop()
        closer = text[index]
        needed = opened[OPENER_OF[closer]] - sum(text[other] == closer for other in surplus)
        if text[index + 1 :].strip(";, \t") or not closed_later[closer] or needed > closed_later[closer]:
            break
        closed_later[closer] -= 1
        opened[OPENER_OF[closer]] -= 1
        text = text[:index]
    return text


def with_closers(text: str, line_prefix: str, line_suffix: str) -> str:
    """Close the brackets that a text of one line opens and the line's suffix leaves open."""
    closers = _closers(text) if "\n" not in text.rstrip() else ""
    if not closers or not unbalances(text, line_prefix, line_suffix):
        return text
    whole = text.rstrip() + closers
    return text if unbalances(whole, line_prefix, line_suffix) else whole


def unbalances(text: str, line_prefix: str, line_suffix: str) -> bool:
    """Whether the line has more unmatched brackets with the text than without it."""
    _, begins, code = line_prefix.rpartition("${")
    before = begins[1:] + code if "}" not in code else line_prefix  # a template string's expression is code
    return _unmatched(before + text + line_suffix) > _unmatched(before + line_suffix)


def _closers(text: str) -> str:
    """The closing brackets for those that the text opens and leaves open."""
    return "".join(CLOSER_OF[each] for each in reversed(_scan(text)[0]))


def _unmatched(line: str) -> int:
    opened, closed, _ = _scan(line)
    return len(opened) + len(closed)


def without_trailing_blanks(text: str, line_suffix: str) -> str:
    """Strip trailing white space, unless it separates the text from the line's suffix."""
    stripped = text.rstrip()
    if not stripped:
        return ""
    blanks = text[len(stripped) :]
    if not line_suffix.strip() or line_suffix[0].isspace():
        return stripped
    separates = _BREAK.search(blanks) or line_suffix[0] not in ")]},;:."
    return text if separates else stripped


def without_last_comma(text: str, offset: int, snapshot: Snapshot) -> str:
    """Drop a comma at the end if only a closing bracket follows, in languages without trailing commas."""
    if not text.endswith(",") or snapshot.language_id not in _COMMAS_ONLY_SEPARATE:
        return text
    is_last = snapshot.slice(offset, offset + _BELOW_CHARS).lstrip().startswith(("]", "}"))
    return text[:-1].rstrip() if is_last else text


def _unclosed(text: str) -> int:
    """The number of brackets and strings that the text leaves open."""
    opened, _, quote = _scan(text)
    return len(opened) + bool(quote)


def _scan(text: str, quote: str = "") -> tuple[list[str], list[int], str]:
    """Opening brackets left open, positions of closing ones that nothing in the text opens, and the quote left open.

    `quote` is already open when the text begins.
    """
    opened: list[str] = []
    unmatched: list[int] = []
    positions, quote = code_outside_strings(text, QUOTES, quote)
    for index in positions:
        character = text[index]
        if character in OPENING:
            opened.append(character)
        elif character in CLOSING:
            if opened and opened[-1] == OPENER_OF[character]:
                opened.pop()
            else:
                unmatched.append(index)
    return opened, unmatched, quote


def without_standing(text: str, context: CompletionContext, snapshot: Snapshot) -> str:
    """The text up to the first line that repeats the document."""
    if _is_standing_item(text, context.line_prefix):
        return ""
    start, end = snapshot.source.line_bounds(context.offset)
    above = snapshot.slice(max(0, start - SEARCHED_CHARS), start).split("\n")[:-1]
    below = snapshot.slice(end, end + SEARCHED_CHARS).split("\n")[1:]
    lines = text.split("\n")
    for number, line in enumerate(lines):
        whole = line if number else context.line_prefix + line + context.line_suffix
        if _is_standing_import(whole, above + below) or _is_standing_member(whole, above, below):
            return "\n".join(lines[:number]).rstrip()
        above.append(whole)
    return text


def _is_standing_import(line: str, others: Iterable[str]) -> bool:
    """Whether a line imports a name that another line imports or the document defines."""
    line = line.strip()
    if not _IMPORT.match(line):
        return False
    ours = _imported(line)
    lines = [other.strip() for other in others]
    if any(ours <= _imported(other) for other in lines if _IMPORT.match(other)):
        return True
    names = "|".join(re.escape(name) for _, name in ours if _WORD.fullmatch(name))
    return bool(names) and re.search(_DEFINED.format(names), "\n".join(lines)) is not None


def _imported(line: str) -> set[tuple[str, str]]:
    """The modules and names that a line imports; a line of another form itself."""
    if (found := _FROM.match(line)) is None:
        return {(line.rstrip(";"), "")}
    return {(found[1], name.strip(" \t)")) for name in found[2].split(",") if name.strip(" \t)")}


def _is_standing_member(line: str, above: list[str], below: list[str]) -> bool:
    """Whether a line within brackets equals one beside it or has the same key."""
    before, after = _beside(line, reversed(above)), _beside(line, below)
    if not _WORD.search(line) or before is None or after is None:
        return False
    ours, key = _member(line), _KEY.match(line.strip())
    others = [_member(other) for other in (*before, *after)]
    keys = [found[1] for other in others if (found := _KEY.match(other)) is not None]
    return key[1] in keys if key is not None else len(ours) > 1 and ours in others


def _beside(line: str, lines: Iterable[str]) -> list[str] | None:
    """The lines with this one's indentation, up to the line of the bracket around them; None without a bracket."""
    indent, found = indent_of(line), list[str]()
    for other in lines:
        if not other.strip():
            continue
        if indent_of(other) < indent:
            return found if other.rstrip()[-1] in OPENING or other.lstrip()[0] in ")]}" else None
        if indent_of(other) == indent:
            found.append(other)
    return None


def _is_standing_item(text: str, line_prefix: str) -> bool:
    """Whether the first item of a text is the one right before it in a list on the cursor's line."""
    opened = list[int]()
    for at, character, _ in outside_strings(line_prefix):
        if character in OPENING:
            opened.append(at)
        elif character in ")]}" and opened:
            opened.pop()
    if not opened or line_prefix[opened[-1]] != "[":
        return False
    *items, begun = [each.strip() for each in line_prefix[opened[-1] + 1 :].split(",")]
    item = (begun + text.partition("\n")[0].partition(",")[0]).strip(" \t])")
    return bool(_WORD.search(item)) and bool(items) and items[-1] == item


def _member(line: str) -> str:
    return line.strip().rstrip(",;").rstrip()
