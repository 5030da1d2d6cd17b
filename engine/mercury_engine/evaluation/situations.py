"""Judge what users see: `python -m mercury_engine.evaluation situations`.

The server decides what is shown, and this package does not import it. So the server's suite, `mercury_lsp.evaluation`,
runs in a process with the same arguments.
"""

import subprocess
import sys
from importlib.util import find_spec

from mercury_engine.errors import RequestError


def main(argv: list[str]) -> int:
    """Run the server's suite; returns its exit status. Raises RequestError if the server is not installed."""
    if find_spec("mercury_lsp") is None:
        raise RequestError("situations judges what the language server shows: pip install mercury-lsp")
    return subprocess.call([sys.executable, "-m", "mercury_lsp.evaluation", "situations", *argv])
