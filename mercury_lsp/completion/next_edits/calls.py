"""Repeats a change of a call's arguments, at the start or the end of its list, in other calls of the same name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mercury_engine.text.brackets import CLOSING, OPENING, code_outside_strings
from mercury_engine.text.common_prefix import common_prefix

_WORD_END = re.compile(r"\w+\Z")
_SIGNS = OPENING + CLOSING + ","


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call on one line: its name, and its arguments as they are written."""

    start: int
    name: str
    arguments: tuple[str, ...]
    text: str


def call_around(line: str, start: int, end: int) -> CallSite | None:
    """The innermost call of a line whose brackets enclose [start, end)."""
    holding = [
        each for each in calls(line) if each.start + len(each.name) < start and end < each.start + len(each.text)
    ]
    return max(holding, key=lambda call: call.start, default=None)


def calls(line: str) -> Iterator[CallSite]:
    """The calls of a line, inner ones before outer ones."""
    opened: list[tuple[int, list[int]]] = []
    for at, character in _signs(line):
        if character in OPENING:
            opened.append((at, [at]))
        elif not opened:
            continue
        elif character == ",":
            opened[-1][1].append(at)
        else:
            first, cuts = opened.pop()
            name = _WORD_END.search(line[:first])
            if character == ")" and line[first] == "(" and name:
                pieces = zip(cuts, [*cuts[1:], at], strict=True)
                arguments = tuple(line[a + 1 : b].strip() for a, b in pieces)
                whole = line[name.start() : at + 1]
                yield CallSite(name.start(), name[0], arguments if any(arguments) else (), whole)


def with_same_change(old: CallSite, new: CallSite, other: CallSite) -> str | None:
    """The text of another call after the change that turned `old` into `new`; None if the change does not apply there.

    The unchanged arguments must come first in all of them, or last.
    """
    if other.name != old.name or old.name != new.name:
        return None
    if other.text == old.text:
        return new.text
    same = common_prefix(old.arguments, new.arguments)
    if same or not old.arguments or not new.arguments:
        removed, added = old.arguments[same:], new.arguments[same:]
        kept = other.arguments[: len(other.arguments) - len(removed)]
        found = (*kept, *added)
        fits = other.arguments == (*kept, *removed)
    else:
        same = common_prefix(old.arguments[::-1], new.arguments[::-1])
        removed, added = old.arguments[: len(old.arguments) - same], new.arguments[: len(new.arguments) - same]
        kept = other.arguments[len(removed) :]
        found = (*added, *kept)
        fits = bool(same) and other.arguments == (*removed, *kept)
    if not fits or any(each in kept for each in added):
        return None
    return f"{other.name}({', '.join(found)})"


def _signs(line: str) -> Iterator[tuple[int, str]]:
    """Brackets and commas outside of strings."""
    return ((at, line[at]) for at in code_outside_strings(line)[0] if line[at] in _SIGNS)
