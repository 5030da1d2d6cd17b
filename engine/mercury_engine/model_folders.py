"""The folders of models: where this user's are, and their JSON files."""

import json
import os
from pathlib import Path
from typing import Any

from mercury_engine.errors import ModelCorrupt, ModelNotFound

PACKAGED_MODELS = Path(__file__).parent / "assets"
"""The folder of the models that come with the package, found by name as installed ones are."""

BUNDLED_MODEL = PACKAGED_MODELS / "mercury-135m"
"""The one that is used by default."""

INSTALLED = "installed:"
"""Prefix of a model that is looked up by name among the installed ones only, so that no path can be given."""

MOST_JSON_BYTES = 2**26
"""Of a model's JSON file; the largest known tokenizers take 35 MB."""


def is_path(model: str) -> bool:
    """Whether this names a folder or file: it has a separator. All else is the name of an installed model."""
    return "/" in model or os.sep in model


def path_of(model: str) -> Path:
    """The path that the text names; `~` is the user's home. Raises ModelNotFound for a user who does not exist."""
    try:
        return Path(model).expanduser()
    except RuntimeError as error:
        raise ModelNotFound(f"{model} is in the home of a user who does not exist; give the absolute path") from error


def user_models() -> Path:
    """The folder where models are looked up by name: ~/.local/share/mercury-lsp/models on Linux by default."""
    from platformdirs import user_data_path  # machines that only train do not have it

    return user_data_path("mercury-lsp", appauthor=False) / "models"


def read_json(path: Path, mend: str = "fetch the model again") -> Any:
    """What a model's file holds, read within bounds: it may come from anywhere.

    Raises ModelCorrupt, whose message ends with `mend`.
    """
    try:
        size = path.stat().st_size
        if size > MOST_JSON_BYTES:
            raise ModelCorrupt(f"{path} has {size:,} bytes, no known model has {MOST_JSON_BYTES:,}; {mend}")
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise ModelCorrupt(f"{path} cannot be read ({error}); {mend}") from error
