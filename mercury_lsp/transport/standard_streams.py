"""The standard streams of a process that may have been started without some of them."""

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def complete() -> frozenset[int]:
    """Open the null device for each closed stream, before a file takes its number; returns the closed numbers."""
    closed = set()
    for descriptor, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            taken = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            os.set_inheritable(taken, True)
            setattr(sys, name, os.fdopen(taken, mode, encoding="utf-8", errors="backslashreplace"))
            closed.add(descriptor)
    return frozenset(closed)


def forgive() -> None:
    """From now on drop what cannot be printed: a full disk must not break the code that prints to the log."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        getattr(sys, name).flush()
        unbuffered: Any = _Lossy(descriptor, "w", closefd=False)
        lossy = io.TextIOWrapper(unbuffered, encoding="utf-8", errors="backslashreplace", write_through=True)
        setattr(sys, name, lossy)


def drop_output() -> None:
    """Drop output that cannot be written, so that the end of the process does not fail with it."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def end_at_once(code: int) -> NoReturn:
    """End the process. sys.exit would wait for threads, and one may still be loading a model."""
    sys.stderr.flush()
    os._exit(code)


class _Lossy(io.FileIO):
    """Drops what cannot be written."""

    def write(self, data: "ReadableBuffer") -> int:
        """Never fails."""
        with suppress(OSError):
            super().write(data)
        return memoryview(data).nbytes
