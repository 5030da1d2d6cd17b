"""Loads the engine for a command run at a terminal."""

import argparse
import sys

from mercury_engine.api import InferenceEngine

from mercury_lsp import default_model
from mercury_lsp.engine_host.loading import load_engine
from mercury_lsp.settings import Settings, named_engines


def add_model_argument(parser: argparse.ArgumentParser, default: str = "the one that editors use") -> None:
    """Declare `--model`; `default` describes the model used without it."""
    help_text = f"a folder, GGUF file, model name or bundled (default: {default})"
    parser.add_argument("--model", metavar="MODEL", help=help_text)


def settings_for(model: str | None) -> Settings:
    """The settings of a command: the model of its option, else the editors' model or remote engine.

    Raises SettingsError and ModelNotFound.
    """
    engine = next(iter(named_engines()), None) if model is None else None
    return Settings.parse({"model": default_model.named(model), "engine": engine})


def load(settings: Settings) -> InferenceEngine:
    """The engine of the settings; a terminal shows that it is loading, or where a remote engine sends the text.

    Raises what `load_engine` raises.
    """
    if sys.stderr.isatty():
        sys.stderr.write("loading the model ...\n" if settings.engine is None else f"asking {settings.engine} ...\n")
    engine = load_engine(settings)
    if notice := getattr(engine, "notice", ""):
        sys.stderr.write(f"{notice}\n")
    return engine
