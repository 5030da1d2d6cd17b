"""Standard input, output and error of a process that may have been started without some of them."""

import os
import sys


def complete() -> frozenset[int]:
    """Open the null device for each closed stream, before a file takes its number; returns the closed numbers."""
    closed = set()
    for descriptor, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            taken = os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
            os.set_inheritable(taken, True)
            setattr(sys, name, os.fdopen(taken, mode, encoding="utf-8", errors="backslashreplace"))
            closed.add(descriptor)
    return frozenset(closed)
