"""Finds where a requested text repeats what the document already has: an import, a key, an item of a list.

It looks at lines, words and indentation only.
"""

import re
from collections.abc import Iterable

from mercury_engine.text.brackets import OPENING, outside_strings
from mercury_engine.text.lines import indent_of

from mercury_lsp.context.context import CompletionContext
from mercury_lsp.documents.document import Snapshot

SEARCHED_CHARS = 100_000
"""Characters on either side of the cursor that are searched."""

_IMPORT = re.compile(r"(?:import|from|use|using)\s|#\s*include\b|(?:const|let|var)\b.*\brequire\(")
_FROM = re.compile(r"from\s+(\S+)\s+import\s+\(?([^#]+)")
_DEFINED = r"\b(?:class|def|enum|func|fn|function|interface|struct|trait|type)\s+(?:{})\b"
_WORD = re.compile(r"[^\W\d]\w*")
_KEY = re.compile(r"""((["']).*?\2|[^\W\d][\w-]*)\s*:(?!:)""")


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
