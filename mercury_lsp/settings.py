"""What users configure under the section `mercury`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from mercury_engine.api import Effort

from mercury_lsp.errors import SettingsError

Device = Literal["auto", "cpu", "cuda"]

MAX_SLOTS = 64


@dataclass(frozen=True, slots=True)
class Settings:
    """One checked configuration; `parse` makes it from the client's JSON, whose keys are in camelCase."""

    model: str | None = None
    """Folder or name; None for the bundled model."""
    device: Device = "auto"
    threads: int | None = None
    effort: Effort = "medium"
    deadline_ms: int | None = None
    """None: no limit."""
    max_slots: int = 32
    gate: float | None = None
    """Least confidence shown unasked, 0 to 1; None: the model's own."""
    enabled: bool = True
    disabled_languages: tuple[str, ...] = ()
    statistics: bool = True
    """Whether suggestions are counted, on this machine only."""
    next_edits: bool = True
    """Whether the last change is offered for other places."""
    workspace_context: bool = True
    """Whether other files of the workspace are looked at."""

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> "Settings":
        """Settings from JSON; keys that are left out have their defaults. Raises SettingsError."""
        if problems := _problems(raw):
            raise SettingsError("; ".join(problems))
        values = {_snake(key): value for key, value in raw.items() if key not in _THE_CLIENTS_OWN}
        values["disabled_languages"] = tuple(values.get("disabled_languages", ()))
        return cls(**values)

    def resolved_from(self, folder: Path | None) -> "Settings":
        """These settings, with the absolute path of a model that is a folder below this one."""
        if folder is None or self.model is None:
            return self
        path = folder / Path(self.model).expanduser()
        return replace(self, model=str(path)) if path.is_dir() else self

    @property
    def engine(self) -> tuple[str | None, Device, int | None]:
        """What the engine is loaded with; another value means another engine."""
        return self.model, self.device, self.threads

    def allows(self, language_id: str) -> bool:
        """Whether anything may be suggested in this language."""
        return self.enabled and language_id not in self.disabled_languages


@dataclass(frozen=True, slots=True)
class _Rule:
    accepts: Callable[[Any], bool]
    allowed: str


def _count(most: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _optional(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or accepts(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _choice(literal: Any) -> _Rule:
    choices = get_args(literal)
    return _Rule(lambda value: isinstance(value, str) and value in choices, ", ".join(choices))


_SWITCH = _Rule(lambda value: isinstance(value, bool), "true, false")

_RULES = {
    "model": _Rule(_optional(_is_text), "a folder, a model name or null"),
    "device": _choice(Device),
    "threads": _Rule(_optional(_count(1024)), "an integer from 1 to 1024 or null"),
    "effort": _choice(Effort),
    "deadlineMs": _Rule(_optional(_count(60_000)), "an integer from 1 to 60000 or null"),
    "maxSlots": _Rule(_count(MAX_SLOTS), f"an integer from 1 to {MAX_SLOTS}"),
    "gate": _Rule(_optional(_is_share), "a number from 0 to 1 or null"),
    "enabled": _SWITCH,
    "disabledLanguages": _Rule(
        lambda value: isinstance(value, list | tuple) and all(map(_is_text, value)),
        "a list of language ids",
    ),
    "nextEdits": _SWITCH,
    "statistics": _SWITCH,
    "workspaceContext": _SWITCH,
}


def _problems(raw: Mapping[str, Any]) -> list[str]:
    if not isinstance(raw, Mapping):
        return [f"mercury is {raw!r}; allowed: an object"]
    return [problem for key, value in raw.items() if (problem := _problem(key, value))]


_THE_CLIENTS_OWN = ("trace",)
"""Keys that clients keep in the same section for themselves."""


def _problem(key: str, value: Any) -> str | None:
    if key in _THE_CLIENTS_OWN:
        return None
    rule = _RULES.get(key)
    if rule is None:
        return f"mercury.{key} is not a setting; allowed: {', '.join(_RULES)}"
    return None if rule.accepts(value) else f"mercury.{key} is {value!r}; allowed: {rule.allowed}"


def _snake(key: str) -> str:
    return re.sub("[A-Z]", lambda found: "_" + found[0].lower(), key)


def section_of(section: Any) -> dict[str, Any]:
    """What a client sent as our section; raises SettingsError when that is no object."""
    if section in (None, []):  # Lua's empty table may arrive as an empty list
        return {}
    if not isinstance(section, Mapping):
        raise SettingsError(f"mercury is {section!r}; allowed: an object")
    return dict(section)
