"""`python -m mercury_engine.training STEP`, with a step of:

corpus, pack, commits, places, compression, base, reader, train, adapt, export.
"""

import sys

from mercury_engine.subcommands import run

STEP_MODULES = {
    "corpus": "data.build",
    "pack": "data.pack",
    "commits": "commits.build",
    "places": "ranking.run",
    "compression": "conversion.compression",
    "base": "conversion.base",
    "reader": "optimisation.reader",
    "train": "optimisation.train",
    "adapt": "adapters.run",
    "export": "conversion.export",
}

if __name__ == "__main__":
    sys.exit(run("mercury_engine.training", STEP_MODULES))
