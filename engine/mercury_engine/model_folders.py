"""Where this user's models are."""

from pathlib import Path

from platformdirs import user_data_path

BUNDLED_MODEL = Path(__file__).parent / "assets" / "mercury-135m"
"""The folder of the model that comes with the package."""


def user_models() -> Path:
    """The folder where models are looked up by name: ~/.local/share/mercury-lsp/models on Linux by default."""
    return user_data_path("mercury-lsp", appauthor=False) / "models"
