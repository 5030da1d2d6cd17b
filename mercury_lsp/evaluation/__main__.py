"""`python -m mercury_lsp.evaluation {situations,edits}`."""

import sys

from mercury_engine.subcommands import run

SUITES = {name: name for name in ("situations", "edits")}

if __name__ == "__main__":
    sys.exit(run("mercury_lsp.evaluation", SUITES))
