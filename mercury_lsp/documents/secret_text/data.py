"""The words, shapes and limits of the rules, from `rules.toml`, and other data beside this file."""

import re
import tomllib
from importlib import resources
from types import SimpleNamespace


def read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


_RULES = tomllib.loads(read("rules.toml"))

LIMITS = SimpleNamespace(**_RULES["limits"])


def words(name: str) -> tuple[str, ...]:
    return tuple(_RULES["words"][name].split("|"))


def shapes(table: str) -> SimpleNamespace:
    """The shapes of a table of `rules.toml`, each a compiled expression by its name."""
    return SimpleNamespace(**{name: re.compile(_filled(text)) for name, text in _RULES[table].items()})


def _filled(text: str) -> str:
    parts = _RULES["words"] | _RULES["parts"]
    return re.sub(r"@\{(\w+)\}", lambda found: _filled(parts[found[1]]), text)
