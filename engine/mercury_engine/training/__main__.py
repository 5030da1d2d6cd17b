"""`python -m mercury_engine.training {base,corpus,train,export}`."""

import sys
from importlib import import_module

from mercury_engine.errors import MercuryError

STEPS = ("corpus", "base", "train", "export")


def main() -> int:
    """Run one step; its own options follow its name."""
    if len(sys.argv) < 2 or sys.argv[1] not in STEPS:
        print(f"usage: python -m mercury_engine.training {{{','.join(STEPS)}}} [options]", file=sys.stderr)
        return 2
    try:
        return import_module(f"mercury_engine.training.{sys.argv[1]}").main(sys.argv[2:])
    except MercuryError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
