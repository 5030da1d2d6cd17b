"""Loads the engine for a command whose user waits at a terminal."""

import sys

from mercury_engine.api import InferenceEngine

from mercury_lsp.engine_host.worker import load_engine
from mercury_lsp.settings import Settings


def load(settings: Settings) -> InferenceEngine:
    """The engine that the settings name; at a terminal it first explains the wait. Raises what `load_engine` raises."""
    if sys.stderr.isatty():
        sys.stderr.write("loading the model ...\n")
    return load_engine(settings)
