"""Runs a package's steps: `python -m PACKAGE {step,...}`, where each step is a module with a `main(argv)`."""

import sys
from collections.abc import Mapping
from importlib import import_module

from mercury_engine.errors import MercuryError


def run(package: str, modules: Mapping[str, str]) -> int:
    """Run the step that the command line names, from its module in the package; returns the exit status."""
    if len(sys.argv) < 2 or sys.argv[1] not in modules:
        sys.stderr.write(f"usage: python -m {package} {{{','.join(modules)}}} [options]\n")
        return 2
    try:
        return import_module(f"{package}.{modules[sys.argv[1]]}").main(sys.argv[2:])
    except MercuryError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
