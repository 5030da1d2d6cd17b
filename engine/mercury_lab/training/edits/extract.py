"""Extract a repeated value into a constant or a variable, and use its name instead."""

import random
import re

from mercury_lab.training.edits.facts import Chain
from mercury_lab.training.edits.names import new_name
from mercury_lab.training.edits.plan import EditPlan, Site, flipped, line_start, plan
from mercury_lab.training.edits.source import Source

_DECLARED = {
    "python": "{name} = {value}\n",
    "javascript": "const {name} = {value};\n",
    "typescript": "const {name} = {value};\n",
    "go": "const {name} = {value}\n",
    "rust": "const {name}: {kind} = {value};\n",
    "lua": "local {name} = {value}\n",
    "shell": "{name}={value}\n",
    "c": "#define {name} {value}\n",
    "cpp": "constexpr auto {name} = {value};\n",
}
_TOP = re.compile(
    r"^(?:import\b|from\b|use\b|package\b|#include\b|\"use strict\"|'use strict'|local \w+ = require\b).*\n", re.M
)
_FIRST = re.compile(r"\n\n(?!else|elif|except|finally)(?=[^\s)\]}#/*\"'])")
_WORDS = re.compile(r"[A-Za-z\d]+")


def sample_plan(source: Source, rng: random.Random) -> EditPlan | None:
    """A plan that starts with the new definition, or its inverse."""
    ways = [_constant, _variable]
    rng.shuffle(ways)
    for way in ways:
        if made := way(source, rng):
            return flipped(made) if rng.random() < 0.25 else made
    return None


def _constant(source: Source, rng: random.Random) -> EditPlan | None:
    """Define a repeated literal before the first top-level item after the imports."""
    text = source.text
    at = _top(text)
    found: dict[str, list[int]] = {}
    for start, end in (*source.tokens.strings, *source.tokens.numbers):
        if at is not None and start >= at and _is_value(text, start, end):
            found.setdefault(text[start:end], []).append(start)
    values = sorted(value for value, places in found.items() if 2 <= len(places) <= 10)
    if not values or at is None or source.language not in _DECLARED:
        return None
    value = rng.choice(values)
    name = _constant_name(value, rng)
    if not name or name in source.tokens.names:
        return None
    kind = "&str" if value[0] == '"' else "f64" if "." in value else "usize"
    definition = _DECLARED[source.language].format(name=name, value=value, kind=kind) + "\n"
    used = f'"${name}"' if source.language == "shell" else name
    sites = [Site(at, at, definition), *(Site(start, start + len(value), used) for start in found[value])]
    return plan("extract", text, sites)


def _variable(source: Source, rng: random.Random) -> EditPlan | None:
    """Assign an attribute that a function reads several times to a variable."""
    groups: dict[tuple[int, str], list[Chain]] = {}
    for chain in sorted(source.facts.chains, key=lambda c: c.start):
        groups.setdefault((chain.function, chain.text), []).append(chain)
    several = sorted(key for key, found in groups.items() if 3 <= len(found) <= 10 and "\n" not in key[1])
    if not several:
        return None
    key = rng.choice(several)
    places = groups[key]
    last = key[1].rpartition(".")[2].lstrip("_")
    is_free = not re.search(rf"(?<![\w.]){re.escape(last)}\b", source.text)
    name = last if is_free else new_name(last, source.tokens.names, source.language, rng)
    if not name or len(name) < 2:
        return None
    line = places[0].line
    sites = [Site(line, line, f"{_indent(source.text, line)}{name} = {key[1]}\n")]
    sites += [Site(chain.start, chain.end, name) for chain in places]
    return plan("extract", source.text, sites)


def _top(text: str) -> int | None:
    """The offset of the line after the imports where definitions start."""
    imports = list(_TOP.finditer(text))
    found = _FIRST.search(text, max(0, imports[-1].end() - 1) if imports else 0)
    return found.end() if found else None


def _is_value(text: str, start: int, end: int) -> bool:
    """Whether a name may replace a literal: not for docstrings, keys and parts of a longer string or template."""
    value = text[start:end]
    if value[0] in "\"'":
        is_worth = 5 <= len(value) <= 60 and value[:3] not in ('"""', "'''")
    else:
        is_worth = value[0].isdigit() and value.replace(".", "", 1).isdigit() and len(value) > 1
    before, behind = text[max(0, start - 80) : start].rstrip(), text[end : end + 80].lstrip()
    alone = text[line_start(text, start) : start].strip() == "" and behind[:1] not in (",", ")", "]", "}")
    joined = before[-1:] in ("\"'") or behind[:1] in ("\"'") or before.endswith(("import", "from", "include", "case"))
    return is_worth and not alone and not joined and behind[:1] != ":"


def _constant_name(value: str, rng: random.Random) -> str:
    if value[0].isdigit():
        return rng.choice(("DEFAULT_SIZE", "MAX_COUNT", "LIMIT", "DEFAULT_VALUE", "MAX_SIZE"))
    words = _WORDS.findall(value)[:3]
    name = "_".join(words).upper()
    return name if name and not name[0].isdigit() and len(name) > 2 else ""


def _indent(text: str, at: int) -> str:
    line = text[at : text.find("\n", at)]
    return line[: len(line) - len(line.lstrip())]
