"""Reads the new lines of a window from an answer: without frames and lines beside it, with missing ends restored."""

import re
from collections.abc import Sequence

from mercury_engine.prompt.edit_families.window import Family, Window, ended
from mercury_engine.text.lines import equal_ends, lines_of

MAX_DROPPED_LINES = 1
"""Lines of a window's end that an answer may delete; if more are missing it did not reach them."""

MIN_KNOWN_CHARS = 8
"""Shortest line, without blanks, that locates an answer in a window: `}` may be anywhere."""

_FENCED = re.compile(r"\A\s*```[^\n`]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_TAGGED = re.compile(r"\A\s*<(\|?)([\w-]+)(\|?)>\n(.*?)\n?<\1/\2\3>\s*\Z", re.DOTALL)


def new_text(family: Family, window: Window, written: str) -> str | None:
    """The window's new text; None if the answer carries a sentinel."""
    text = family.answer(window, written)
    if text == window.text:
        return text
    text = _without_cursor(_unwrapped(text, window.text), family.cursor)
    if any(marker in text for marker in family.markers):
        return None
    text = text.rstrip("\n") + window.text[len(window.text.rstrip("\n")) :]
    return "".join(_placed(lines_of(text), window)) if text.strip() else window.text


def _unwrapped(text: str, shown: str) -> str:
    """A text out of its code fence or its tags, unless what was shown stands in such itself."""
    for frame in (_FENCED, _TAGGED):
        if (found := frame.match(text)) is not None and frame.match(shown) is None:
            text = ended(found[found.lastindex or 0])
    return text


def _without_cursor(text: str, mark: str) -> str:
    """A text without marks of the cursor; a line that was only one is dropped."""
    if mark not in text:
        return text
    return "".join(line.replace(mark, "") for line in lines_of(text) if line.strip() != mark)


def _placed(lines: Sequence[str], window: Window) -> list[str]:
    """An answer's lines, without those that stand beside the window, and with the window's ends that it left out."""
    shown = lines_of(window.text)
    found = _begun(list(lines), shown, lines_of(window.above)[-len(lines) :])
    below = lines_of(window.below)[: len(lines)]
    turned = _begun(found[::-1], shown[::-1], below[::-1][-len(found) :] if below else [])
    return turned[::-1]


def _begun(lines: list[str], shown: list[str], beside: list[str]) -> list[str]:
    """The lines, starting as the window does; `beside` are the lines before it. For the end, reverse all lists."""
    if equal_ends(lines, shown)[0]:
        return lines
    for count in range(len(beside), 0, -1):
        is_same = lines[:count] == beside[-count:]
        if is_same and (lines[count : count + 1] == shown[:1] or _is_known(lines[:count])):
            return lines[count:]
    starts = [at for at in range(MAX_DROPPED_LINES + 1, len(shown)) if shown[at : at + 2] == lines[:2]]
    return shown[: starts[0]] + lines if len(starts) == 1 and _is_known(lines[:2]) else lines


def _is_known(lines: Sequence[str]) -> bool:
    return any(len("".join(line.split())) >= MIN_KNOWN_CHARS for line in lines)
