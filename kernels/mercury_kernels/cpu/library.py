"""Loads the build of the C library that suits this processor best."""

import ctypes
import os
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mercury_kernels.cpu.builds import NEEDED, PROBE, kinds, machine, path

FORCED = "MERCURY_CPU_KERNELS"
"""Environment variable that names one of `builds.INSTRUCTION_SETS`, to try another than the best."""

VERSION = 13
"""Version of the interface between the library and this module."""

_FEATURES_SIZE = 256
"""Room for the probe's answer, in bytes."""

_ELF_SECTIONS = struct.Struct("<40xQ10xHH2x")
"""In the header of an ELF file: the offset of the table of sections, and the size and number of its entries."""

_POINTER = ctypes.c_void_p
_INT = ctypes.c_int
_LONG = ctypes.c_int64

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "mercury_version": (_INT, []),
    "mercury_lanes": (_INT, []),
    "mercury_new": (_POINTER, [_INT] * 7 + [ctypes.c_float] * 4 + [_INT]),
    "mercury_free": (None, [_POINTER]),
    "mercury_matrix": (_INT, [_POINTER] + [_INT] * 5),
    "mercury_blocks": (_INT, [_POINTER] + [_INT] * 5 + [_LONG, _POINTER]),
    "mercury_vector": (_INT, [_POINTER, _INT, _INT, _POINTER]),
    "mercury_large": (_INT, [_POINTER, _INT, _POINTER]),
    "mercury_low_rank": (_INT, [_POINTER] + [_INT] * 4 + [_POINTER] * 2),
    "mercury_run": (_INT, [_POINTER] * 6 + [_INT, _POINTER, _INT] + [_POINTER] * 2 + [_INT] * 2),
    "mercury_place": (None, [_POINTER, _POINTER, _INT, _INT] + [_POINTER] * 4),
    "mercury_head": (_INT, [_POINTER, _INT, _POINTER, _POINTER, _INT]),
    "mercury_answers": (None, [_POINTER] * 2 + [_INT] * 3 + [_POINTER] * 8),
}


class UnsupportedProcessor(OSError):
    """There are no kernels for this processor. The message says what runs the model instead."""


@cache
def features() -> frozenset[str]:
    """The processor's features, by the names of Linux's /proc/cpuinfo; empty where no probe was built.

    Raises OSError, which says what to do, if the probe is broken.
    """
    if not path(PROBE).is_file():
        return frozenset()
    answer = ctypes.create_string_buffer(_FEATURES_SIZE)
    probe = _opened(path(PROBE), {"mercury_features": (None, [ctypes.c_char_p, ctypes.c_size_t])})
    probe.mercury_features(answer, len(answer))
    return frozenset(answer.value.decode("ascii").split())


def suitable() -> list[str]:
    """The builds that this processor can run, best first. Raises OSError if the probe is broken."""
    return [name for name, kind in kinds().items() if features().issuperset(kind.needs)]


def built() -> str | None:
    """The best build that exists and suits the processor, or the one that `FORCED` asks for; None if there is none.

    Raises OSError if the probe is broken.
    """
    return next((kind for kind in suitable() if path(kind).is_file() and os.environ.get(FORCED, kind) == kind), None)


@cache
def library() -> Any:
    """The best library, loaded once.

    Raises UnsupportedProcessor, or OSError if it was not built or is broken; both say what to do.
    """
    kind = built()
    if kind is None:
        raise _why_none()
    return load(path(kind))


def _why_none() -> OSError:
    probed, runs, forced = path(PROBE).is_file(), suitable(), os.environ.get(FORCED)
    if not kinds() or (probed and not runs):
        from mercury_kernels.installation import install_command  # late: needed for messages only

        return UnsupportedProcessor(
            f"there are no C kernels for this processor ({machine()}). {NEEDED} "
            f"Torch runs the model here, more slowly: {install_command('gpu')}"
        )
    if probed and forced and forced not in runs:
        return OSError(f"{FORCED} is {forced!r}, but this processor runs {', '.join(runs)}: name one of them")
    return OSError(f"the C kernels for this processor were not built. To build them: {_reinstall()}")


def load(file: Path) -> Any:
    """A library with its functions declared.

    Raises OSError, which says what to do, if it is broken or another version.
    """
    loaded = _opened(file, _SIGNATURES)
    if loaded.mercury_version() != VERSION:
        raise _other_version(file)
    return loaded


def _opened(file: Path, signatures: Mapping[str, tuple[Any, list[Any]]]) -> Any:
    """A library that the system has loaded, with its functions declared. Raises OSError."""
    if _is_cut_off(file):
        raise OSError(f"{file} is incomplete. To replace it: {_reinstall()}")
    try:
        loaded = ctypes.CDLL(str(file.absolute()))
        for name, (result, arguments) in signatures.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except OSError as error:
        raise OSError(f"{file} cannot be loaded ({error}). To replace it: {_reinstall()}") from error
    except AttributeError:
        raise _other_version(file) from None
    return loaded


def _is_cut_off(file: Path) -> bool:
    """Whether an ELF file lacks its end, the table of sections: Linux kills a process that loads one."""
    with file.open("rb") as opened:
        header = opened.read(_ELF_SECTIONS.size)
    if not header.startswith(b"\x7fELF"):
        return False
    if len(header) < _ELF_SECTIONS.size:
        return True
    table, entry_size, entries = _ELF_SECTIONS.unpack(header)
    return file.stat().st_size < table + entry_size * entries


def _other_version(file: Path) -> OSError:
    return OSError(f"{file} has another version than this program. To replace it: {_reinstall()}")


def _reinstall() -> str:
    from mercury_kernels.installation import reinstall_command  # late: needed for messages only

    return reinstall_command()
