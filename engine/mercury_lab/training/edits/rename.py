"""Rename a name everywhere in its scope."""

import random
import re

from mercury_lab.training.data.filters import DATA_LANGUAGES
from mercury_lab.training.edits.facts import Function
from mercury_lab.training.edits.names import new_name
from mercury_lab.training.edits.plan import EditPlan, Site, TextSpan, plan
from mercury_lab.training.edits.source import Source

MAX_OCCURRENCES = 14
"""Occurrences; names that occur more often are not renamed."""

LOCAL_REACH_CHARS = 1000
"""Characters on either side of a place; a name that occurs only within them looks local."""

_DEFINED = re.compile(
    r"\b(?:def|class|func|fn|function|struct|interface|enum|type|trait|const|let|var|static|local|val)\s+"
    r"(?:mut\s+)?([^\W\d]\w*)|^([^\W\d]\w*)\s*(?::[^=\n]*)?:?=(?!=)|^([^\W\d]\w*)\(\)\s*\{",
    re.M,
)
_OF_SELF = re.compile(r"\b(?:self|this)\.(\w+)\b")
_KEYWORD_ARGUMENT = re.compile(r"[(,]\s*$")
_DISTINCT = re.compile(r"[a-z\d]_[a-z\d]|[a-z][A-Z]|.-.")


def sample_plan(source: Source, rng: random.Random) -> EditPlan | None:
    """A plan that renames one name; the first site is its definition."""
    kinds = [_defined, _local, _attribute]
    rng.shuffle(kinds)
    for kind in kinds:
        if made := kind(source, rng):
            return made
    return None


def _defined(source: Source, rng: random.Random) -> EditPlan | None:
    """Rename a function, class or constant everywhere."""
    if source.language in DATA_LANGUAGES:
        names = {name: places[0] for name, places in source.tokens.names.items() if "-" in name}
    else:
        names = {
            match[match.lastindex or 0]: match.start(match.lastindex or 0) for match in _DEFINED.finditer(source.text)
        }
    names = {name: at for name, at in names.items() if len(name) > 2 and _often(source, name)}
    if not names:
        return None
    old = rng.choice(sorted(names))
    places = [at for at in source.tokens.names[old] if not _is_keyword_argument(source, at + len(old), at)]
    if _DISTINCT.search(old.strip("_")):
        places += _in_comments(source, old)
    return _plan(source, old, places, names[old], rng)


def _local(source: Source, rng: random.Random) -> EditPlan | None:
    """Rename a parameter or variable inside its function, or inside a stretch of unparsed text that has all of it."""
    functions = [function for function in source.facts.functions if function.locals and function.name]
    function = rng.choice(functions) if functions else None
    if function:
        names = [name for name in sorted(function.locals) if len(name) > 1 and name in source.tokens.names]
        span = (function.start, function.end)
    elif source.is_parsed or source.language in DATA_LANGUAGES:
        return None
    else:
        at = rng.randint(0, len(source.text))
        span = (max(0, at - LOCAL_REACH_CHARS), at + LOCAL_REACH_CHARS)
        names = [name for name in source.tokens.names if name.islower() and _all_inside(source, name, span)]
    found = {name: _inside(source, name, span, function) for name in names}
    candidates = [name for name, places in found.items() if 2 <= len(places) <= MAX_OCCURRENCES]
    if not candidates:
        return None
    old = rng.choice(candidates)
    return _plan(source, old, found[old], found[old][0], rng)


def _attribute(source: Source, rng: random.Random) -> EditPlan | None:
    """Rename an attribute of self or this."""
    places: dict[str, list[int]] = {}
    for match in _OF_SELF.finditer(source.text):
        places.setdefault(match[1], []).append(match.start(1))
    names = [
        name for name, found in places.items() if 2 <= len(found) <= MAX_OCCURRENCES and _only_dotted(source, name)
    ]
    names = [name for name in names if len(name) > 2 and not name.startswith("__")]
    if not names:
        return None
    old = rng.choice(sorted(names))
    return _plan(source, old, source.tokens.names[old], places[old][0], rng)


def _plan(source: Source, old: str, places: list[int], first: int, rng: random.Random) -> EditPlan | None:
    new = new_name(old, source.tokens.names, source.language, rng)
    if new is None:
        return None
    order = sorted(set(places), key=lambda at: (at != first, at < first, at))
    return plan("rename", source.text, [Site(at, at + len(old), new) for at in order])


def _often(source: Source, name: str) -> bool:
    return 2 <= len(source.tokens.names.get(name, ())) <= MAX_OCCURRENCES


def _inside(source: Source, name: str, span: TextSpan, function: Function | None) -> list[int]:
    """Offsets of a local name, except after a dot and as the name of a keyword argument or a key."""
    return [
        at
        for at in source.tokens.names[name]
        if span[0] <= at < span[1]
        and not source.text.endswith((".", "->", "::"), max(0, at - 2), at)
        and (
            (function is not None and function.opening <= at < function.closing)
            or not _is_keyword_argument(source, at + len(name), at)
        )
    ]


def _all_inside(source: Source, name: str, span: TextSpan) -> bool:
    places = source.tokens.names[name]
    return span[0] <= places[0] and places[-1] < span[1]


def _only_dotted(source: Source, name: str) -> bool:
    return all(source.text[at - 1 : at] == "." for at in source.tokens.names.get(name, ())) and _often(source, name)


def _is_keyword_argument(source: Source, end: int, at: int) -> bool:
    """Whether the name is that of a keyword argument or a key."""
    text = source.text
    behind = text[end : end + 2].lstrip()
    if source.language == "python":
        is_named = behind.startswith("=") and not behind.startswith("==")
    else:
        is_named = behind.startswith(":") and not behind.startswith((":=", "::")) and source.language != "c"
        is_named = is_named and source.language not in ("rust", "typescript", *DATA_LANGUAGES)
    return is_named and bool(_KEYWORD_ARGUMENT.search(text, max(0, at - 200), at))


def _in_comments(source: Source, name: str) -> list[int]:
    """Offsets of the name in comments, and of strings that equal it."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    found = [match.start() for start, end in source.tokens.comments for match in word.finditer(source.text, start, end)]
    quoted = [start + 1 for start, end in source.tokens.strings if source.text[start + 1 : end - 1] == name]
    return found + quoted
