"""Checks a library's file before the system loads it: on Linux, loading the start of one kills the process."""

import struct
import sys
from pathlib import Path

from mercury_kernels.cpu.builds import machine

_SYSTEMS = {b"\x7fELF": "Linux", b"\xcf\xfa\xed\xfe": "macOS", b"MZ": "Windows"}
"""The system of a library that starts with these bytes."""

_NAMES = {"darwin": "macOS", "win32": "Windows"}
"""Systems by their names in `sys.platform`; any other one loads ELF files, as Linux does."""

_MACHINES = {0x3E: "x86_64", 0xB7: "arm64"}
"""By the number in an ELF header."""

_ELF_HEADER = struct.Struct("<18xH20xQ10xHH2x")
"""Of its 64 bytes: the machine, then the offset of the sections' table, and the size and number of its entries."""


def problem(file: Path) -> str | None:
    """What is wrong with a library's file, as the end of a sentence; None if the system can try to load it.

    Raises OSError if the file cannot be read.
    """
    with file.open("rb") as opened:
        start = opened.read(_ELF_HEADER.size)
    system = next((name for magic, name in _SYSTEMS.items() if start.startswith(magic)), None)
    here = _NAMES.get(sys.platform, "Linux")
    if system is None:
        return "is broken"
    if system != here:
        return f"is made for {system}, not for {here}"
    return _problem_of_elf(start, file.stat().st_size) if system == "Linux" else None


def _problem_of_elf(start: bytes, size: int) -> str | None:
    """The table of sections is the last thing in the file."""
    if len(start) < _ELF_HEADER.size:
        return "is incomplete"
    number, table, entry_size, entries = _ELF_HEADER.unpack(start)
    if (made_for := _MACHINES.get(number, "another processor")) != machine():
        return f"is made for {made_for}, not for {machine()}"
    return "is incomplete" if table + entry_size * entries > size else None
