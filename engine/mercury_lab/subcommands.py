"""Runs a package's steps: `python -m mercury_lab.PACKAGE {step,...}`; each step is a module with a `main(argv)`."""

import sys
from collections.abc import Mapping
from importlib import import_module

from mercury_engine.errors import MercuryError


def run(package: str, modules: Mapping[str, str]) -> int:
    """Run the step that the command line names, from its module in `mercury_lab`; returns the exit status."""
    if len(sys.argv) < 2 or sys.argv[1] not in modules:
        sys.stderr.write(f"usage: python -m mercury_lab.{package} {{{','.join(modules)}}} [options]\n")
        return 2
    try:
        return import_module(f"mercury_lab.{modules[sys.argv[1]]}").main(sys.argv[2:])
    except MercuryError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
