"""How much memory this machine has."""

import os
import sys


def total_mb() -> float | None:
    """The machine's memory in MB; None if the system does not report it."""
    if sys.platform == "win32":
        return _windows_total_mb()
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (ValueError, OSError):
        return None


if sys.platform == "win32":

    def _windows_total_mb() -> float | None:
        import ctypes

        kilobytes = ctypes.c_ulonglong()
        if not ctypes.windll.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes)):
            return None
        return kilobytes.value / 1024
