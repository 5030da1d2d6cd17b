"""Add, remove or swap parameters, in the definition and in every call."""

import random
from collections.abc import Sequence
from dataclasses import replace

from mercury_lab.training.edits.facts import Call, Function, ListItem
from mercury_lab.training.edits.plan import EditPlan, Site, flipped, plan, without_item
from mercury_lab.training.edits.source import Source

_COMMON_FUNCTION_NAMES = frozenset(
    """add append call clone close copy count decode encode extend filter find format get index init items join keys
    len main map new open pop push read replace run set sort split strip to_string update values write""".split()  # noqa: SIM905
)

_PLAIN_VALUES = (
    "None",
    "True",
    "False",
    "null",
    "nil",
    "true",
    "false",
    "undefined",
    "nullptr",
    "NULL",
    "[]",
    "{}",
    "()",
)

_NEW_PARAMETERS = {
    "timeout": ("float", "30", "number", "int", "u64"),
    "limit": ("int", "100", "number", "int", "usize"),
    "depth": ("int", "0", "number", "int", "u32"),
    "retries": ("int", "3", "number", "int", "u32"),
    "verbose": ("bool", "False", "boolean", "bool", "bool"),
    "strict": ("bool", "True", "boolean", "bool", "bool"),
    "prefix": ("str", '""', "string", "string", "&str"),
    "mode": ("str", '"default"', "string", "string", "&str"),
    "context": ("Context", "None", "Context", "*Context", "&Context"),
    "options": ("dict", "None", "Options", "Options", "&Options"),
    "logger": ("Logger", "None", "Logger", "*Logger", "&Logger"),
    "cache": ("dict", "None", "Cache", "*Cache", "&mut Cache"),
}
"""For each new parameter: type and value in Python, and types in TypeScript, Go and Rust."""


def sample_plan(source: Source, rng: random.Random) -> EditPlan | None:
    """A plan for one function and its calls, in the first way that applies."""
    facts = source.facts
    functions = [
        f
        for f in facts.functions
        if f.name and f.name not in _COMMON_FUNCTION_NAMES and facts.only(f.called) and f.opening
    ]
    pairs = [
        (
            f,
            [
                call
                for call in facts.calls_of(f.called)
                if f.may_be_meant(call) and not f.start <= call.start < f.closing
            ],
        )
        for f in functions
    ]
    pairs = [(f, calls) for f, calls in pairs if 1 <= len(calls) <= 12]
    if not pairs:
        return None
    function, calls = rng.choice(pairs)
    ways = [_synthetic, _real, _swapped, _swapped]
    rng.shuffle(ways)
    for way in ways:
        if made := way(source, function, calls, rng):
            return made
    return None


def _synthetic(source: Source, function: Function, calls: list[Call], rng: random.Random) -> EditPlan | None:
    """Add, or remove, a parameter that is new to the file."""
    items = function.parameters
    names = [name for name in sorted(_NEW_PARAMETERS) if name not in source.tokens.names]
    by_name = source.language == "python" and rng.random() < 0.5
    given = [argument for call in calls for argument in call.arguments]
    is_open = all(item.is_plain for item in (*items, *given))
    if not names or not (is_open or (by_name and all(item.is_plain or item.name for item in given))):
        return None
    if items and source.text[items[-1].start] == "*":
        return None
    name = rng.choice(names)
    value = name if rng.random() < 0.4 else _value(source.language, name, rng)
    declared = _declared(source, function, name)
    if by_name:
        declared += f" = {value}" if ":" in declared else f"={value}"
    argument = f"{name}={value}" if by_name else value
    sites = [_appended(items, function.opening, declared)]
    sites += [_appended(call.arguments, call.opening, argument) for call in calls]
    made = plan("add_parameter", source.text, sites)
    if made and rng.random() < 0.4:
        return replace(flipped(made), kind="remove_parameter")
    return made


def _real(source: Source, function: Function, calls: list[Call], rng: random.Random) -> EditPlan | None:
    """Add a parameter of the file; before the edit only the body used it."""
    items = function.parameters
    spans = [item.span for item in items]
    candidates = [index for index in range(function.bound, len(items)) if items[index].name and _word(items[index])]
    if not candidates:
        return None
    index = rng.choice(candidates)
    removals = [without_item(source.text, spans, index)]
    for call in calls:
        at = _given(call, items[index], index - function.bound)
        if at is not None:
            if not _is_foreseen(source.text[slice(*call.arguments[at].span)], items[index].name):
                return None
            removals.append(without_item(source.text, [item.span for item in call.arguments], at))
    sites = [site for site in removals if site]
    if len(sites) < 2 or len(sites) < len(removals):
        return None
    made = plan("add_parameter", source.text, sites)
    return flipped(made) if made else None


def _swapped(source: Source, function: Function, calls: list[Call], rng: random.Random) -> EditPlan | None:
    """Swap two adjacent parameters."""
    items = function.parameters
    places = [i for i in range(function.bound, len(items) - 1) if items[i].is_plain and items[i + 1].is_plain]
    if not places:
        return None
    index = rng.choice(places)
    sites = [_exchange(source.text, items[index], items[index + 1])]
    for call in calls:
        at = index - function.bound
        given = call.arguments[: at + 2]
        if len(given) == at + 2 and all(item.is_plain for item in given):
            sites.append(_exchange(source.text, *given[-2:]))
        elif not any(item.name for item in call.arguments):
            return None
    made = plan("reorder_parameters", source.text, sites)
    return flipped(made) if made and rng.random() < 0.5 else made


def _given(call: Call, item: ListItem, place: int) -> int | None:
    """The index of the call's argument for the parameter; None if unclear."""
    for number, argument in enumerate(call.arguments):
        if argument.name == item.name:
            return number
        if not argument.is_plain and not argument.name:
            return None
    plain = [argument.is_plain for argument in call.arguments]
    return place if item.is_plain and place < len(plain) and all(plain[: place + 1]) else None


def _is_foreseen(argument: str, name: str) -> bool:
    """Whether the argument can be guessed from the parameter: it contains its name, or is a plain value."""
    value = argument.rpartition("=")[2].strip()
    return name in value or value in _PLAIN_VALUES or value[:1] in "\"'" or value.isdigit()


def _appended(items: Sequence[ListItem], opening: int, text: str) -> Site:
    """The site that appends an entry to a list."""
    if not items:
        return Site(opening, opening, text)
    return Site(items[-1].end, items[-1].end, f", {text}")


def _exchange(text: str, first: ListItem, second: ListItem) -> Site:
    between = text[first.end : second.start]
    return Site(first.start, second.end, text[slice(*second.span)] + between + text[slice(*first.span)])


def _declared(source: Source, function: Function, name: str) -> str:
    """The new parameter in the style of the language and of this function."""
    python, _, script, go, rust = _NEW_PARAMETERS[name]
    match source.language:
        case "python":
            typed = any(":" in source.text[slice(*item.span)] for item in function.parameters)
            return f"{name}: {python}" if typed else name
        case "typescript":
            return f"{name}: {script}"
        case "go":
            return f"{name} {go}"
        case "rust":
            return f"{name}: {rust}"
        case "java" | "c" | "cpp":
            return f"{'int' if python in ('int', 'float') else 'const char *' if python == 'str' else 'bool'} {name}"
    return name


def _value(language: str, name: str, rng: random.Random) -> str:
    value = _NEW_PARAMETERS[name][1]
    if value.isdigit():
        return str(rng.choice((int(value), 2 * int(value) + 1, 10)))
    if language == "python":
        return value
    names = {"None": {"go": "nil", "lua": "nil", "cpp": "nullptr", "c": "NULL"}.get(language, "null")}
    return names.get(value, value.lower())


def _word(item: ListItem) -> bool:
    return item.name not in ("args", "kwargs")
