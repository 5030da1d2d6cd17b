"""A name in every style in which code writes it."""

import re
from collections.abc import Sequence

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def in_every_style(old: str, new: str) -> dict[str, str]:
    """A name's mapping in every style: snake_case, kebab-case, camelCase, PascalCase and capitals."""
    ours, theirs = ([part.lower() for part in _PARTS.findall(name)] for name in (old, new))
    found = {old: new}
    if ours and theirs:
        for style in (_snake, _kebab, _camel, _pascal, lambda parts: _snake(parts).upper()):
            found.setdefault(style(ours), style(theirs))
    return found


def _snake(parts: Sequence[str]) -> str:
    return "_".join(parts)


def _kebab(parts: Sequence[str]) -> str:
    return "-".join(parts)


def _camel(parts: Sequence[str]) -> str:
    return parts[0] + "".join(map(str.capitalize, parts[1:]))


def _pascal(parts: Sequence[str]) -> str:
    return "".join(map(str.capitalize, parts))
