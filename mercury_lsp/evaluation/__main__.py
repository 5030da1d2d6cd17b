"""`python -m mercury_lsp.evaluation {situations}`."""

import sys

from mercury_engine.subcommands import run

SUITES = {"situations": "situations"}

if __name__ == "__main__":
    sys.exit(run("mercury_lsp.evaluation", SUITES))
