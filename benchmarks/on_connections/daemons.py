"""Daemons that a benchmark starts and stops."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mercury_lsp.daemon import control
from mercury_lsp.daemon.address import UnixAddress

INSTANT_DAEMON = (sys.executable, str(Path(__file__).with_name("instant_daemon.py")))
"""Command of a daemon whose engine answers immediately; takes the path of its record and an address."""


@contextmanager
def daemon(address: UnixAddress, command: Sequence[str]) -> Iterator[int]:
    """A running daemon that answers; gives its process id."""
    process = subprocess.Popen([*command, *address.arguments])
    try:
        while control.ask(address, "status") is None:
            time.sleep(0.02)
        yield process.pid
    finally:
        control.stop(address)
        process.wait()
