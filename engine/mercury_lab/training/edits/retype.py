"""Change the type of a name wherever it is declared."""

import random

from mercury_lab.training.edits.facts import Typed
from mercury_lab.training.edits.plan import EditPlan, Site, flipped, plan
from mercury_lab.training.edits.source import Source

_REPLACEMENT_TYPES: dict[str, dict[str, tuple[str, ...]]] = {
    "python": {
        "int": ("float", "str", "int | None"),
        "str": ("bytes", "Path", "str | None"),
        "float": ("int", "Decimal"),
        "bool": ("int", "bool | None"),
        "list": ("tuple", "Sequence"),
        "dict": ("Mapping", "OrderedDict"),
        "Any": ("object",),
    },
    "typescript": {
        "string": ("number", "string | null", "string | undefined"),
        "number": ("string", "bigint", "number | null"),
        "boolean": ("boolean | undefined", "string"),
        "any": ("unknown",),
    },
    "go": {
        "int": ("int64", "uint", "uint32"),
        "string": ("[]byte", "fmt.Stringer"),
        "[]byte": ("string", "io.Reader"),
        "bool": ("int",),
        "error": ("*Error",),
    },
    "rust": {
        "u32": ("u64", "usize"),
        "i32": ("i64", "isize"),
        "usize": ("u64", "u32"),
        "String": ("Arc<str>", "PathBuf"),
        "&str": ("String", "&Path"),
        "bool": ("Option<bool>",),
    },
    "java": {
        "int": ("long", "Integer"),
        "long": ("int", "Duration"),
        "String": ("CharSequence", "Optional<String>"),
        "boolean": ("Boolean",),
    },
    "c": {"int": ("size_t", "long", "unsigned int"), "char": ("uint8_t",), "size_t": ("uint32_t",)},
}
_REPLACEMENT_TYPES["cpp"] = _REPLACEMENT_TYPES["c"] | {"std::string": ("std::string_view",)}

_OPTIONAL_TYPE = {
    "python": "{} | None",
    "typescript": "{} | undefined",
    "go": "*{}",
    "rust": "Option<{}>",
    "java": "Optional<{}>",
    "cpp": "std::optional<{}>",
}


def sample_plan(source: Source, rng: random.Random) -> EditPlan | None:
    """A plan for one name that is declared with the same type in several places."""
    groups: dict[tuple[str, str], list[Typed]] = {}
    for typed in source.facts.types:
        groups.setdefault((typed.name, source.text[typed.start : typed.end]), []).append(typed)
    several = sorted(key for key, found in groups.items() if 2 <= len(found) <= 12 and len(key[1]) <= 60)
    if not several:
        return None
    name, old = rng.choice(several)
    new = _changed(source.language, old, rng)
    if new is None:
        return None
    places = sorted(groups[name, old], key=lambda typed: typed.start)
    made = plan("change_type", source.text, [Site(typed.start, typed.end, new) for typed in places])
    return flipped(made) if made and rng.random() < 0.4 else made


def _changed(language: str, old: str, rng: random.Random) -> str | None:
    """Another type, known or a generic of the old one."""
    known = _REPLACEMENT_TYPES.get(language, {}).get(old.strip("\"'"), ())
    outer = [_OPTIONAL_TYPE[language].format(old)] if language in _OPTIONAL_TYPE and "None" not in old else []
    if language == "python" and old.startswith(("list[", "List[")):
        outer += [f"Sequence[{old[5:]}", f"Iterable[{old[5:]}"]
    if language == "typescript" and old.endswith("[]"):
        outer += [f"readonly {old}", f"Set<{old[:-2]}>"]
    choices = [*known, *outer]
    return rng.choice(choices) if choices else None
