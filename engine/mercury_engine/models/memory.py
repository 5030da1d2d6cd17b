"""Keeps the process small: returns freed memory, unmaps unused code, and reports what memory there is.

Functions do nothing, and report None, on systems without what they need (glibc, Linux).
"""

import contextlib
import ctypes
import gc
import mmap
import os
import re
import sys
from pathlib import Path

LARGE_ALLOCATION = 1 << 20
"""Bytes from which on an allocation is mapped by itself, so that freeing it returns it to the system."""

LEAST_FREE_MB = 256.0
"""What is left to other programs."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Options of glibc's `mallopt`, from malloc.h."""

_UNMODIFIED_CODE = re.compile(
    r"^(\w+)-(\w+) r-xp .*/.*\n"  # an executable mapping of a file
    r"(?:(?!Anonymous)[A-Z].*\n)*Anonymous: +0 kB",  # without modified pages, which would be lost
    re.MULTILINE,
)
"""Start and end of such a mapping in Linux's smaps."""


def map_large_allocations() -> None:
    """Make glibc map allocations of LARGE_ALLOCATION bytes and more."""
    with contextlib.suppress(OSError, AttributeError):
        glibc = ctypes.CDLL("libc.so.6")
        for option in (_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD):
            glibc.mallopt(option, LARGE_ALLOCATION)


def is_out_of_memory(error: Exception) -> bool:
    """Whether the host or a device has no memory left."""
    torch = sys.modules.get("torch")
    return isinstance(error, MemoryError) or (torch is not None and isinstance(error, torch.OutOfMemoryError))


def collect_and_return_memory() -> None:
    """Collect garbage and return freed memory to the system; some 30 ms."""
    gc.collect()
    return_freed_memory()


def return_freed_memory() -> None:
    """Have glibc return freed memory to the system: some 25 MB after a long prefill, in milliseconds."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def unmap_library_code() -> None:
    """Unmap the library code that importing and loading touched; code that runs again is mapped again.

    It stays in the system's page cache, which other processes share.
    """
    with contextlib.suppress(OSError, AttributeError):
        madvise = ctypes.CDLL("libc.so.6").madvise
        for start, end in _UNMODIFIED_CODE.findall(Path("/proc/self/smaps").read_text()):
            size = int(end, 16) - int(start, 16)
            madvise(ctypes.c_void_p(int(start, 16)), ctypes.c_size_t(size), mmap.MADV_DONTNEED)


def total_mb() -> float | None:
    """The machine's memory in MB."""
    if sys.platform == "win32":
        kilobytes = ctypes.c_ulonglong()
        found = ctypes.windll.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes))
        return kilobytes.value / 1024 if found else None
    with contextlib.suppress(ValueError, OSError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
    return None


def resident_mb() -> float | None:
    """Resident memory of this process in MB."""
    with contextlib.suppress(ValueError, OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
    return None


def available_mb() -> float | None:
    """What programs may still take without making others slow, in MB."""
    with contextlib.suppress(KeyError, OSError):
        return _account()["MemAvailable"] / 1024
    return None


def available_bytes() -> int | None:
    """Memory that a process may still get, including swap."""
    try:
        account = _account()
        found = 1024 * (account["MemAvailable"] + account["SwapFree"])
    except (OSError, KeyError):
        return None
    with contextlib.suppress(OSError, ValueError):  # a container's limit; "max" is none
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found


def shortage() -> str | None:
    """Why this process should give memory back; None if it need not."""
    available = available_mb()
    if available is not None and available < LEAST_FREE_MB:
        return f"this machine has {available:,.0f} MB of memory left"
    return None


def _account() -> dict[str, int]:
    """Linux's account of its memory, in kB. Raises OSError elsewhere."""
    found = re.findall(r"(\w+): +(\d+) kB", Path("/proc/meminfo").read_text())
    return {name: int(kilobytes) for name, kilobytes in found}
