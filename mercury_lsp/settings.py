"""What users configure under the section `mercury`."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from mercury_engine.api import Effort
from mercury_engine.errors import MercuryError
from mercury_engine.model_folders import INSTALLED, is_path, path_of

from mercury_lsp.errors import SettingsError
from mercury_lsp.plain_data import Allowed, fields_of, read, within

Device = Literal["auto", "cpu", "cuda"]

Eagerness = Literal["auto", "low", "medium", "high"]
"""`auto`: between `low` and `high`, by what the user takes."""

Display = Literal["text", "subtle"]
"""`subtle`: a mark says that there is a text, and a key shows it."""

DisabledIn = Literal["comments", "strings"]

LanguageId = Annotated[str, Allowed("a language id", bool)]

BUNDLED = "bundled"
"""Names the bundled model, as `null` does."""

SAME = "same"
"""As the model for edits names the model of the fills, as `null` does."""

_ADD = "run mercury-lsp models add with its path, then give its name in the settings"

EngineKey = tuple[str | None, str | None, Device, int | None]
"""URL of a remote engine, model, device and threads."""

ENGINE_VARIABLE = "MERCURY_ENGINE"
"""URLs of the remote engines that may be used, the first by default: a repository cannot set the environment."""

EDIT_ENGINE_VARIABLE = "MERCURY_EDIT_ENGINE"
"""The same for models of edits; each URL may name a format and, after `#`, the model."""

EDIT_REQUESTS_PER_MINUTE = 20
"""Most requests a minute to a server for edits that is not this machine: some are paid by request."""


def _is_engine(value: str, takes_query: bool = False) -> bool:
    try:
        url = urlsplit(value)
        has_port = url.port != 0
    except ValueError:
        return False
    is_web = has_port and url.scheme in ("http", "https") and bool(url.hostname) and not re.search(r"\s", value)
    return is_web and not url.username and (takes_query or not url.query)


def _is_model(value: str) -> bool:
    return bool(value) and not is_url(value)


def _is_edit_model(value: str) -> bool:
    return value != BUNDLED and (_is_model(value) or _is_engine(value, takes_query=True))


_MODEL = Allowed(
    "a folder, a GGUF file, a model name, bundled or null; a URL belongs to engine or editModel", _is_model
)

_EDIT_MODEL = Allowed(
    f"a folder, a GGUF file, a model name, a URL that {EDIT_ENGINE_VARIABLE} names, same or null; the bundled model"
    " makes no edits",
    _is_edit_model,
)

_ENGINE = Allowed(
    f"an http or https URL without a password or query, which {ENGINE_VARIABLE} names, or null", _is_engine
)


@dataclass(frozen=True, slots=True)
class Settings:
    """A checked configuration; `parse` makes one from the client's JSON, whose keys are in camelCase."""

    model: Annotated[str | None, _MODEL] = None
    """Absolute path of a folder or GGUF file, or a name, perhaps after `installed:`; None for the bundled model."""
    edit_model: Annotated[str | None, _EDIT_MODEL] = None
    """The model that makes next edits, named likewise or by a URL; None for the one above."""
    edit_requests_per_minute: Annotated[int, within(1, 6000, "an integer")] = EDIT_REQUESTS_PER_MINUTE
    """Most requests a minute to a server for edits on another machine."""
    engine: Annotated[str | None, _ENGINE] = None
    """URL of the engine to ask instead of the model, which answers while the engine does not."""
    device: Device = "auto"
    threads: Annotated[int | None, within(1, 1024, "null or an integer")] = None
    effort: Effort = "medium"
    deadline_ms: Annotated[int | None, within(1, 60_000, "null or an integer")] = None
    """Longest time for a fill; None: no limit."""
    eagerness: Eagerness = "auto"
    """How readily something is shown while typing."""
    enabled: bool = True
    disabled_languages: Annotated[tuple[LanguageId, ...], Allowed("a list of language ids")] = ()
    disabled_in: Annotated[tuple[DisabledIn, ...], Allowed("a list of comments, strings")] = ()
    """Where nothing is shown automatically."""
    display: Display = "text"
    statistics: bool = True
    """Whether suggestions are counted; the counts stay on this machine."""
    next_edits: bool = True
    """Whether the last change is offered in other places."""
    wait_for_context: bool = False
    """Whether the first suggestion at a new place waits until all of its context is read."""
    workspace_context: bool = True
    """Whether other files of the workspace are read."""

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> "Settings":
        """Settings from JSON; missing keys get their defaults. Raises SettingsError."""
        values, problems = dict[str, Any](), list[str]()
        for key, value in raw.items():
            if key in _FIELDS:
                name, kind = _FIELDS[key]
                try:
                    values[name] = read(value, kind)
                except (TypeError, ArithmeticError) as error:
                    problems.append(f"mercury.{key}: {error}")
            elif key not in _CLIENT_KEYS:
                problems.append(f"mercury.{key} is not a setting; allowed: {', '.join(_FIELDS)}")
        if problems:
            raise SettingsError("; ".join(problems))
        for name, standing_for_none in (("model", BUNDLED), ("edit_model", SAME)):
            if values.get(name) == standing_for_none:
                values[name] = None
        return cls(**values)

    def require_trusted_models(self, workspace: Sequence[Path]) -> None:
        """Raise SettingsError for models and engines that a repository may have chosen or brought along.

        Those are relative paths, paths below the opened folders or after `installed:`, and URLs that the environment
        does not name. Accesses the disk.
        """
        edit_url = self.edit_model if self.edit_model is not None and is_url(self.edit_model) else None
        for url, variable in ((self.engine, ENGINE_VARIABLE), (edit_url, EDIT_ENGINE_VARIABLE)):
            if url is not None and url not in named_engines(variable):
                raise SettingsError(
                    f"{url} is not used, because a repository may have named it; add the URL to {variable}"
                )
        for model in (self.model, self.edit_model):
            if model is not None and not is_url(model) and is_path(model):
                _require_trusted(model, workspace)

    @property
    def for_edits(self) -> "Settings | None":
        """The settings of the model for edits; None if there is no separate one."""
        is_own = self.edit_model is not None and self.edit_model != self.model
        return replace(self, model=self.edit_model, engine=None) if is_own else None

    @property
    def engine_key(self) -> EngineKey:
        """Connections with equal keys share an engine."""
        return self.engine, self.model, self.device, self.threads

    def allows(self, language_id: str) -> bool:
        """Whether anything may be suggested in this language."""
        return self.enabled and language_id not in self.disabled_languages


def named_engines(variable: str = ENGINE_VARIABLE) -> list[str]:
    """The URLs in an environment variable, the default first."""
    return os.environ.get(variable, "").split()


def is_url(model: str) -> bool:
    """Whether a model is named by the URL of a server."""
    return model.startswith(("http://", "https://"))


def is_loopback(url: str) -> bool:
    """Whether the URL's host is this machine."""
    return is_own_host(urlsplit(url).hostname or "")


def is_elsewhere(model: str | None) -> bool:
    """Whether a model or an engine is named by the URL of another machine."""
    return model is not None and is_url(model) and not is_loopback(model)


def is_own_host(host: str) -> bool:
    """Whether only this machine can reach a host of this name or address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _require_trusted(model: str, workspace: Sequence[Path]) -> None:
    if model.startswith(INSTALLED):
        named = model.removeprefix(INSTALLED)
        raise SettingsError(f"a workspace may name an installed model, but not the folder or file {named}; {_ADD}")
    try:
        path = Path(os.path.normpath(path_of(model)))
        if not path.is_absolute():
            raise SettingsError(f"{model} could belong to any repository; give the absolute path, or {_ADD}")
        roots = {form for root in workspace for form in (root, root.resolve())}
        if any(form.is_relative_to(root) for form in (path, path.resolve()) for root in roots):
            raise SettingsError(f"the model {model} is in the opened workspace and is not used; {_ADD}")
    except (MercuryError, OSError, ValueError) as error:
        raise SettingsError(str(error)) from error


_CLIENT_KEYS = ("trace",)
"""Keys that clients keep in our section for their own use."""

_FIELDS = {
    re.sub("_([a-z])", lambda found: found[1].upper(), name): (name, kind)
    for name, (kind, _) in fields_of(Settings).items()
}
"""By the key in JSON, a field's name and its type."""


def section_of(section: Any) -> dict[str, Any]:
    """The section that a client sent as ours. Raises SettingsError if it is not an object."""
    if section in (None, []):  # Lua's empty table may arrive as an empty list
        return {}
    if not isinstance(section, Mapping):
        raise SettingsError(f"mercury is {section!r}; allowed: an object")
    return dict(section)
