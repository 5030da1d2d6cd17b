"""`python -m mercury_lab.training STEP`, with a step of:

held-out, commits, adapt.
"""

import sys

from mercury_lab.subcommands import run

STEP_MODULES = {"held-out": "training.data.held_out", "commits": "training.commits.build", "adapt": "training.adapt"}

if __name__ == "__main__":
    sys.exit(run("training", STEP_MODULES))
