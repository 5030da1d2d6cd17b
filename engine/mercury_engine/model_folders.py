"""Where this user's models are."""

from pathlib import Path

BUNDLED_MODEL = Path(__file__).parent / "assets" / "mercury-135m"
"""The folder of the model that comes with the package."""


INSTALLED = "installed:"
"""Prefix of a model that is looked up by name among the installed ones only, so that no path can be given."""


def user_models() -> Path:
    """The folder where models are looked up by name: ~/.local/share/mercury-lsp/models on Linux by default."""
    from platformdirs import user_data_path  # machines that only train do not have it

    return user_data_path("mercury-lsp", appauthor=False) / "models"
