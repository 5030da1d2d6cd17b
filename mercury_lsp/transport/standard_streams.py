"""Standard input, output and error of a process that was started without some of them."""

import os
import sys


def complete() -> frozenset[int]:
    """Have the null device wherever one is closed, before anything else of ours lands there; which were closed."""
    closed = set()
    for descriptor, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            taken = os.open(os.devnull, os.O_RDWR)  # the lowest that is free, which is this one
            os.set_inheritable(taken, True)
            setattr(sys, name, os.fdopen(taken, mode, encoding="utf-8", errors="backslashreplace"))
            closed.add(descriptor)
    return frozenset(closed)
