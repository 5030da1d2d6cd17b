"""`python -m mercury_lab.training STEP`, with a step of:

corpus, pack, commits, base, reader, train, adapt, denoiser, export.
"""

import sys

from mercury_lab.subcommands import run

STEP_MODULES = {
    "corpus": "training.data.build",
    "pack": "training.data.pack",
    "commits": "training.commits.build",
    "base": "training.conversion.base",
    "reader": "training.optimisation.reader",
    "train": "training.optimisation.train",
    "adapt": "training.adapters.run",
    "denoiser": "training.denoiser.run",
    "export": "training.conversion.export",
}

if __name__ == "__main__":
    sys.exit(run("training", STEP_MODULES))
