"""One command of several: `python -m PACKAGE {step,...}`, each step a module of the package with a `main(argv)`."""

import sys
from collections.abc import Sequence
from importlib import import_module

from mercury_engine.errors import MercuryError


def run(package: str, names: Sequence[str]) -> int:
    """Run the step named on the command line with the options behind it; the exit status."""
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.stderr.write(f"usage: python -m {package} {{{','.join(names)}}} [options]\n")
        return 2
    try:
        return import_module(f"{package}.{sys.argv[1]}").main(sys.argv[2:])
    except MercuryError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
