"""The engine for a command whose user waits at a terminal."""

import sys

from mercury_lsp.engine_host.worker import HostedEngine, load_engine
from mercury_lsp.settings import Settings


def load(settings: Settings) -> HostedEngine:
    """The engine that the settings name, after a word on stderr about the wait. Raises whatever the loading raises."""
    if sys.stderr.isatty():
        sys.stderr.write("loading the model ...\n")
    return load_engine(settings)
