"""Loads the build of the C library that suits this processor best."""

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch

from mercury_kernels.cpu.build import kinds, path

FORCED = "MERCURY_CPU_KERNELS"
"""Environment variable that names one of `build.INSTRUCTION_SETS`, to try another than the best."""

REINSTALL = "pip install --force-reinstall --no-cache-dir --no-deps mercury-lsp"

VERSION = 5
"""Version of the interface between the library and this module."""

_POINTER = ctypes.c_void_p
_INT = ctypes.c_int
_LONG = ctypes.c_int64

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "mercury_version": (_INT, []),
    "mercury_lanes": (_INT, []),
    "mercury_new": (_POINTER, [_INT] * 6 + [ctypes.c_float, _INT]),
    "mercury_free": (None, [_POINTER]),
    "mercury_matrix": (_INT, [_POINTER] + [_INT] * 5),
    "mercury_codes": (None, [_POINTER] + [_INT] * 4 + [_POINTER] * 3),
    "mercury_bias": (_INT, [_POINTER, _INT, _INT, _POINTER]),
    "mercury_norms": (_INT, [_POINTER, _INT, _POINTER, _POINTER]),
    "mercury_low_rank": (_INT, [_POINTER] + [_INT] * 4 + [_POINTER] * 2),
    "mercury_run": (_INT, [_POINTER] * 7 + [_INT] + [_POINTER] * 2),
    "mercury_place": (None, [_POINTER, _POINTER, _INT, _INT] + [_POINTER] * 4),
    "mercury_head": (_INT, [_POINTER, _INT, _POINTER, _POINTER]),
}


def suitable() -> list[str]:
    """The builds that this processor can run, best first."""
    found: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    runs = {name: all(found.get(each) for each in kind.needs) for name, kind in kinds().items()}
    return [name for name in runs if runs[name] and _has_dot_products(name)]


def _has_dot_products(kind: str) -> bool:
    """Whether the processor runs a `dotprod` build, as every ARM processor of Apple's does; true for other builds."""
    if kind != "dotprod" or sys.platform == "darwin":
        return True
    listed = Path("/proc/cpuinfo")
    return listed.is_file() and "asimddp" in listed.read_text()


def built() -> str | None:
    """The best build that exists and suits the processor, or the one that `FORCED` asks for; None if there is none."""
    return next((kind for kind in suitable() if path(kind).is_file() and os.environ.get(FORCED, kind) == kind), None)


@cache
def library() -> Any:
    """The best library, loaded once. Raises OSError if there is none."""
    kind = built()
    if kind is None:
        raise OSError(f"no C kernels were built for this processor; install a C compiler, then {REINSTALL}")
    return load(path(kind))


def load(file: Path) -> Any:
    """A library with its functions declared. Raises OSError if its version is another one."""
    loaded = ctypes.CDLL(str(file))
    if not hasattr(loaded, "mercury_version") or loaded.mercury_version() != VERSION:
        raise OSError(f"{file} has another version; {REINSTALL}")
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded
