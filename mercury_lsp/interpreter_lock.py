"""How soon a thread gets Python's interpreter lock from one that works without a pause."""

import sys

SWITCH_SECONDS = 0.0005
"""Longest wait before the lock's holder is asked for it; less than a slice of long work takes.

An event loop releases the lock between two slices and takes it back before another thread wakes up, whose wait begins
again. With Python's 5 ms and slices of 1.2 ms a call to the engine waited 0.3 to 1 s for a text to be cut.
"""


def share() -> None:
    """Let threads of this process wait no longer than that."""
    sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
