"""The builds of the C kernels, one for each instruction set, and their files, which `compile_kernels.py` makes."""

import platform
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

PROBE = "probe"
"""The name of the library that lists the processor's features."""

NEEDED = "They need an x86-64 processor with AVX2, or an ARM processor with dot products, and a 64-bit Python."


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """One build: its machine, its compiler flags, and the processor features that it needs.

    Features have the names of Linux's /proc/cpuinfo.
    """

    machine: str
    flags: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


_AVX2 = ("-mavx2", "-mfma", "-mf16c")
_AVX512 = ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni")
_NEEDS_AVX2 = ("avx2", "fma", "f16c")
_NEEDS_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni")

INSTRUCTION_SETS = {
    "avx512": InstructionSet("x86_64", (*_AVX2, *_AVX512), (*_NEEDS_AVX2, *_NEEDS_AVX512)),
    "avxvnni": InstructionSet("x86_64", (*_AVX2, "-mavxvnni"), (*_NEEDS_AVX2, "avx_vnni")),
    "avx2": InstructionSet("x86_64", _AVX2, _NEEDS_AVX2),
    "dotprod": InstructionSet("arm64", () if sys.platform == "darwin" else ("-mcpu=generic+dotprod",), ("asimddp",)),
}
"""Best first."""

_NAMES = {"amd64": "x86_64", "aarch64": "arm64"}


def machine() -> str:
    """This interpreter's architecture, by the same name on every system."""
    emulated = sysconfig.get_platform().rpartition("-")[2] if sys.platform == "win32" else platform.machine()
    name = _NAMES.get(emulated.lower(), emulated.lower())
    return name if sys.maxsize > 2**32 else f"32-bit {name}"


def kinds() -> dict[str, InstructionSet]:
    """The instruction sets of this machine, best first; empty if there are no kernels for it."""
    return {name: kind for name, kind in INSTRUCTION_SETS.items() if kind.machine == machine()}


def path(kind: str) -> Path:
    return FOLDER / f"mercury_{kind}{'.dll' if sys.platform == 'win32' else '.so'}"
