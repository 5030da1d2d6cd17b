"""The words, shapes and limits of the rules, from `rules.toml`, and other data beside this file."""

import re
import tomllib
from functools import cache
from importlib import resources
from types import SimpleNamespace
from typing import Any

_PART = re.compile(r"@\{(\w+)\}")


def read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


@cache
def _rules() -> dict[str, Any]:
    return tomllib.loads(read("rules.toml"))


def words(name: str) -> tuple[str, ...]:
    return tuple(_rules()["words"][name].split("|"))


def shapes(table: str) -> SimpleNamespace:
    """The shapes of a table of `rules.toml`, each a compiled expression by its name."""
    return SimpleNamespace(**{name: re.compile(_filled(text)) for name, text in _rules()[table].items()})


def _filled(text: str) -> str:
    rules = _rules()
    return _PART.sub(lambda found: _filled(rules["parts"].get(found[1]) or rules["words"][found[1]]), text)


LIMITS = SimpleNamespace(**_rules()["limits"])
