"""The models that editors use where their settings name none: the user's choices, in files beside the models."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mercury_engine.model_folders import is_path, path_of, user_models

from mercury_lsp.errors import SettingsError
from mercury_lsp.settings import BUNDLED, EDIT_ENGINE_VARIABLE, SAME, named_engines


def path(edits: bool = False) -> Path:
    """The file that holds the choice: a model's name. `edits`: that of the model for edits."""
    return user_models().parent / ("default-edit-model" if edits else "default-model")


def read(edits: bool = False) -> str | None:
    """The chosen model's name; None for the defaults: the bundled model, and for edits the one that fills.

    Raises SettingsError.
    """
    choice = path(edits)
    try:
        name = choice.read_text("utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{choice} cannot be read ({error}); delete it, or run mercury-lsp models use") from error
    if is_path(name):
        raise SettingsError(f"{choice} must hold a model's name, not {name}; run mercury-lsp models use")
    return name if name not in ("", SAME if edits else BUNDLED) else None


def named(model: str | None) -> str | None:
    """The model that a command's option names: the user's choice if it names none; None is the bundled one.

    A path gets absolute: it counts from the folder in which the user named it. Raises SettingsError and ModelNotFound.
    """
    if model is None:
        return read()
    if model == BUNDLED:
        return None
    return str(path_of(model).absolute()) if is_path(model) else model


def added_to(section: Mapping[str, Any]) -> dict[str, Any]:
    """A client's settings, with the user's choices where they name no model or engine.

    `null` chooses the bundled model, no remote engine, and no model for edits.
    """
    edits = next(iter(named_engines(EDIT_ENGINE_VARIABLE)), None) or read(edits=True)
    chosen = {"model": read(), "editModel": edits, "engine": next(iter(named_engines()), None)}
    return chosen | dict(section)
