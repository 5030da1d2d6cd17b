"""Rename a key in all literals and look-ups."""

import random
import re

from mercury_lab.training.data.filters import DATA_LANGUAGES
from mercury_lab.training.edits.names import new_name
from mercury_lab.training.edits.plan import EditPlan, Site, plan
from mercury_lab.training.edits.source import Source

MAX_KEY_SITES = 12

_KEY = re.compile(r"[A-Za-z][\w-]{1,30}")
_BEFORE_VALUE = re.compile(r"\s*(?:=>|:(?!:))")
_LOOKED_UP = re.compile(r"(?:[\w\])]\[|\.get\(|\.pop\(|\.setdefault\()\s*$")
_BARE = re.compile(r"^[ \t]*(?:- )?([A-Za-z][\w-]+)[ \t]*[:=](?=\s)", re.M)


def sample_plan(source: Source, rng: random.Random) -> EditPlan | None:
    """A plan that renames one key that occurs more than once."""
    text = source.text
    places: dict[str, list[int]] = {}
    for start, end in source.tokens.strings:
        name = text[start + 1 : end - 1]
        is_key = _BEFORE_VALUE.match(text, end) or _LOOKED_UP.search(text, max(0, start - 20), start)
        if text[start] in "\"'" and _KEY.fullmatch(name) and is_key:
            places.setdefault(name, []).append(start + 1)
    if source.language in ("yaml", "toml"):
        for match in _BARE.finditer(text):
            places.setdefault(match[1], []).append(match.start(1))
    several = sorted(name for name, found in places.items() if 2 <= len(found) <= MAX_KEY_SITES)
    if not several:
        return None
    old = rng.choice(several)
    taken = source.tokens.names.keys() | places.keys()
    new = new_name(old, taken, source.language, rng)
    if new is None or (source.language not in DATA_LANGUAGES and not _KEY.fullmatch(new)):
        return None
    return plan("key", text, [Site(at, at + len(old), new) for at in sorted(set(places[old]))])
