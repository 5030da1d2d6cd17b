"""Suites that judge what users see.

The server decides what is shown, and this package does not import it. So the server's suites, `mercury_lsp.evaluation`,
run in a process with the same arguments.
"""

import subprocess
import sys
from importlib.util import find_spec

from mercury_engine.errors import RequestError


def run_suite(name: str, argv: list[str]) -> int:
    """Run one of the server's suites; returns its exit status. Raises RequestError if the server is not installed."""
    if find_spec("mercury_lsp") is None:
        raise RequestError(
            f"{name} judges what the language server shows, and the server is not installed beside the engine"
        )
    return subprocess.call([sys.executable, "-m", "mercury_lsp.evaluation", name, *argv])
