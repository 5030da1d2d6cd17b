"""Disks that nothing can be written to: full ones and read-only ones. Only root can mount them, on Linux."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

Fault = Literal["full", "read-only"]


class CannotMount(Exception):
    """We are not root, or not on Linux."""


@contextmanager
def mounted(path: Path) -> Iterator[Path]:
    """A disk of 64 KB at the path."""
    path.mkdir(exist_ok=True)
    if sys.platform != "linux" or _run("mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", str(path)):
        raise CannotMount
    try:
        yield path
    finally:
        _run("umount", "-l", str(path))


def spoil(disk: Path, fault: Fault) -> None:
    """Fill the disk, or make it read-only."""
    if fault == "full":
        with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
    elif _run("mount", "-o", "remount,ro", str(disk)):
        _run("umount", "-l", str(disk))
        raise CannotMount


def _run(*command: str) -> int:
    try:
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode
    except OSError:
        return 1
