"""`python -m mercury_engine.evaluation {infill,mixture}`."""

import sys
from importlib import import_module

from mercury_engine.errors import MercuryError

SUITES = ("infill", "mixture")


def main() -> int:
    """Run one suite; its own options follow its name."""
    if len(sys.argv) < 2 or sys.argv[1] not in SUITES:
        print(f"usage: python -m mercury_engine.evaluation {{{','.join(SUITES)}}} [options]", file=sys.stderr)
        return 2
    try:
        return import_module(f"mercury_engine.evaluation.{sys.argv[1]}").main(sys.argv[2:])
    except MercuryError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
