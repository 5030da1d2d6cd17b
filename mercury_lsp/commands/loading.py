"""The engine for a command whose user waits at a terminal."""

import sys

from mercury_lsp.engine_host.worker import Engine, load_engine
from mercury_lsp.settings import Settings


def load(settings: Settings) -> Engine:
    """The engine that the settings name, after a word on stderr about the wait. Raises whatever the loading raises."""
    if sys.stderr.isatty():
        sys.stderr.write("loading the model ...\n")
    return load_engine(settings)
