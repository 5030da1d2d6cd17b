"""Compiles the C kernels, once per instruction set.

The package's build runs this module, and so does `python kernels/mercury_kernels/cpu/build.py`, so it needs only the
standard library. Without a C compiler nothing is built, and torch runs the model.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

SOURCES = ("network.c", "threads.c")

FLAGS = (
    *("-O3", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-Wno-psabi"),
    *("-fno-math-errno", "-ffp-contract=fast"),
)

LIBRARIES = ("-pthread", "-lm")


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """One build: its machine, its compiler flags, and the processor features that it needs.

    Features have the names of `torch.cpu.get_capabilities`.
    """

    machine: str
    flags: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


_AVX2 = ("-mavx2", "-mfma", "-mf16c")
_AVX512 = ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni")

INSTRUCTION_SETS = {
    "avx512": InstructionSet(
        "x86_64", (*_AVX2, *_AVX512), ("avx512_vnni", "avx512_bw", "avx512_dq", "avx512_vl", "fma3", "f16c")
    ),
    "avxvnni": InstructionSet("x86_64", (*_AVX2, "-mavxvnni"), ("avx_vnni", "avx2", "fma3", "f16c")),
    "avx2": InstructionSet("x86_64", _AVX2, ("avx2", "fma3", "f16c")),
    "dotprod": InstructionSet("arm64", () if sys.platform == "darwin" else ("-mcpu=generic+dotprod",)),
}
"""Best first."""

_NAMES = {"amd64": "x86_64", "aarch64": "arm64"}


def machine() -> str:
    """This machine's architecture, by the same name on every system."""
    name = platform.machine().lower()
    return _NAMES.get(name, name)


def kinds() -> dict[str, InstructionSet]:
    """The instruction sets of this machine, best first."""
    return {name: kind for name, kind in INSTRUCTION_SETS.items() if kind.machine == machine()}


def path(kind: str) -> Path:
    """The file of a build."""
    return FOLDER / f"mercury_{kind}{'.dll' if sys.platform == 'win32' else '.so'}"


def compiler() -> list[str] | None:
    """The C compiler's command: CC, or the first compiler found; None without one.

    On Windows, Zig's compiler comes first: GCC misaligns vectors on the stack there, and Clang may lack threads.
    """
    if given := os.environ.get("CC"):
        return shlex.split(given, posix=sys.platform != "win32")
    zig = [sys.executable, "-m", "ziglang", "cc"] if find_spec("ziglang") else None
    if zig and sys.platform == "win32":
        return zig
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return [found]
    return zig


def compile_kind(command: list[str], flags: tuple[str, ...], target: Path) -> None:
    """Compile one build. Raises OSError, or subprocess.CalledProcessError with the compiler's output in `stderr`."""
    sources = [str(FOLDER / name) for name in SOURCES]
    made = target.with_suffix(f".{os.getpid()}")
    try:
        arguments = [*command, *FLAGS, *flags, *sources, "-o", str(made), *LIBRARIES]
        subprocess.run(arguments, check=True, capture_output=True, text=True)
        made.replace(target)  # processes that have loaded the old file keep it
    finally:
        made.unlink(missing_ok=True)


def build() -> list[Path]:
    """Compile all builds for this machine and return their files; reports failed builds on stderr."""
    command = compiler()
    if command is None:
        _say("no C compiler found: torch will run the model, several times as slow. Install gcc or clang")
        return []
    built = []
    for name, kind in kinds().items():
        try:
            compile_kind(command, kind.flags, path(name))
        except (OSError, subprocess.CalledProcessError) as error:
            _say(f"{name} kernels were not built ({error}): {getattr(error, 'stderr', '')[-2000:]}")
        else:
            built.append(path(name))
    return built


def _say(text: str) -> None:
    print(f"mercury-lsp: {text}", file=sys.stderr)


if __name__ == "__main__":
    for each in build():
        print(each)
