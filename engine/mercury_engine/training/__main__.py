"""`python -m mercury_engine.training {corpus,pack,compression,base,reader,train,export}`."""

import sys

from mercury_engine.subcommands import run

STEPS = ("corpus", "pack", "compression", "base", "reader", "train", "export")

if __name__ == "__main__":
    sys.exit(run("mercury_engine.training", STEPS))
