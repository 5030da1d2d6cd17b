"""The model that editors use where their settings name none: the user's choice, in a file beside the models."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mercury_engine.model_folders import user_models

from mercury_lsp.errors import SettingsError
from mercury_lsp.settings import BUNDLED


def path() -> Path:
    """The file that holds the choice: a model's name."""
    return user_models().parent / "default-model"


def read() -> str | None:
    """The chosen model's name; None for the bundled model, which is the choice of those who made none.

    Raises SettingsError.
    """
    try:
        name = path().read_text("utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path()} cannot be read ({error}); delete it, or run mercury-lsp models use") from error
    return name if name and name != BUNDLED else None


def named(model: str | None) -> str | None:
    """The model that a command's option names: the user's choice if it names none; None is the bundled one."""
    return read() if model is None else None if model == BUNDLED else model


def added_to(section: Mapping[str, Any]) -> dict[str, Any]:
    """A client's settings, with the user's choice where they name no model; `null` chooses the bundled one."""
    return {"model": read()} | dict(section)
