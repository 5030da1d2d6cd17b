"""How much memory this machine has and this process takes."""

import os
import sys
from pathlib import Path


def total_mb() -> float | None:
    """The machine's memory in MB; None if the system does not report it."""
    if sys.platform == "win32":
        return _windows_total_mb()
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (ValueError, OSError):
        return None


LEAST_FREE_MB = 256.0
"""What is left to other programs."""


def shortage() -> str | None:
    """Why this process should give memory back; None if it need not."""
    available = available_mb()
    if available is not None and available < LEAST_FREE_MB:
        return f"this machine has {available:,.0f} MB of memory left"
    return None


def available_mb() -> float | None:
    """What programs may still take without making others slow, in MB; None if the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None
    return int(kilobytes) / 1024


def resident_mb() -> float | None:
    """Resident memory of this process in MB; None if the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError):
        return None
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


if sys.platform == "win32":

    def _windows_total_mb() -> float | None:
        import ctypes

        kilobytes = ctypes.c_ulonglong()
        if not ctypes.windll.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes)):
            return None
        return kilobytes.value / 1024
