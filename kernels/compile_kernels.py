"""Compiles the C kernels, once per instruction set, and the probe that tells which of them the processor runs.

The package's build runs this module, and so does `python kernels/compile_kernels.py`, so it needs only the standard
library. It is no part of the package.
"""

import atexit
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from mercury_kernels.cpu import builds

SOURCES = ("network.c", "threads.c")

PROBE_SOURCES = ("probe.c",)

FLAGS = (
    *("-O3", "-g0", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-Wno-psabi"),
    *("-fno-math-errno", "-ffp-contract=fast"),
)

LIBRARIES = ("-pthread", "-lm")

OLDEST_GLIBC = "2.17"
"""The C library that Zig links against on Linux; newer ones run the result too."""

OLDEST_MACOS = {"x86_64": "10.13", "arm64": "11.0"}


HARDENING = {
    "any": (
        ("-fstack-protector-strong",),
        ("-fstack-clash-protection",),
        ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3"),
        ("-Wl,-z,relro",),
        ("-Wl,-z,now",),
        ("-Wl,-z,noexecstack",),
    ),
    "x86_64": (("-fcf-protection",),),
    "arm64": (("-mbranch-protection=standard",),),
}
"""What distributions add, by machine; each is left out where the compiler refuses it."""

_TRIAL = """
#include <pthread.h>
#include <stdio.h>
#include <string.h>
__attribute__((visibility("default")))
int trial(const char *text) { char copy[64]; strcpy(copy, text); return puts(copy); }
"""
"""It exports something, because Zig crashes on a library for macOS that does not."""

_INSTALL = {
    "darwin": "Install Apple's command line tools (xcode-select --install)",
    "linux": "Install gcc (apt install gcc libc6-dev, dnf install gcc, or apk add gcc musl-dev)",
}


class BuildError(Exception):
    """No kernels were built. The message says how to get a compiler that builds them."""


def compiler() -> list[str] | None:
    """The C compiler's command: CC, else the first found that knows all instruction sets, else Zig's; None without one.

    On Windows only Zig's compiler is used: GCC misaligns vectors on the stack there, and Clang may lack threads.
    """
    if given := os.environ.get("CC"):
        return shlex.split(given, posix=sys.platform != "win32")
    if sys.platform != "win32" and (found := next(_installed(), None)):
        return found
    return [sys.executable, "-m", "ziglang", "cc", "-target", zig_target()] if find_spec("ziglang") else None


def needs_zig() -> bool:
    """Whether the build has to bring Zig: there are kernels for this machine, but no compiler that builds them."""
    if not builds.kinds() or os.environ.get("CC"):
        return False
    return sys.platform == "win32" or next(_installed(), None) is None


def _installed() -> Iterator[list[str]]:
    """The system's compilers that know all instruction sets of this machine."""
    for name in ("cc", "gcc", "clang"):
        if (found := shutil.which(name)) and not _is_placeholder(found) and _knows_everything((found,)):
            yield [found]


def _is_placeholder(found: str) -> bool:
    """Whether it is Apple's, which opens a dialog instead of compiling when the command line tools are missing."""
    if sys.platform != "darwin" or not found.startswith("/usr/bin/"):
        return False
    return subprocess.run(["/usr/bin/xcode-select", "-p"], capture_output=True).returncode != 0


@cache
def _knows_everything(command: tuple[str, ...]) -> bool:
    return _accepts(command, tuple(flag for kind in builds.kinds().values() for flag in kind.flags))


def _accepts(command: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    """Whether the command compiles and links a few lines of C with these flags."""
    with TemporaryDirectory() as folder:
        source = Path(folder) / "trial.c"
        source.write_text(_TRIAL)
        try:
            _run([*command, *FLAGS, "-Werror", *flags, str(source), "-o", str(source.with_suffix(".so")), *LIBRARIES])
        except (OSError, subprocess.CalledProcessError):
            return False
    return True


@cache
def hardening(command: tuple[str, ...]) -> tuple[str, ...]:
    """The flags of HARDENING that a compiler accepts for this machine.

    None on Windows, whose linkers protect without being asked; Zig would compile its C library again for each flag.
    """
    if sys.platform == "win32":
        return ()
    offered = HARDENING["any"] + HARDENING.get(builds.machine(), ())
    everything = tuple(flag for flags in offered for flag in flags)
    if _accepts(command, everything):
        return everything
    return tuple(flag for flags in offered if _accepts(command, flags) for flag in flags)


def zig_target() -> str:
    """This machine's name for Zig, which would otherwise compile for this processor and system only."""
    architecture = "aarch64" if builds.machine() == "arm64" else builds.machine()
    if sys.platform == "win32":
        return f"{architecture}-windows-gnu"
    if sys.platform == "darwin":
        oldest = os.environ.get("MACOSX_DEPLOYMENT_TARGET") or OLDEST_MACOS.get(builds.machine(), "11.0")
        return f"{architecture}-macos.{oldest}"
    return f"{architecture}-linux-" + (f"gnu.{OLDEST_GLIBC}" if platform.libc_ver()[0] == "glibc" else "musl")


def compile_kind(command: list[str], flags: tuple[str, ...], target: Path, sources: tuple[str, ...] = SOURCES) -> None:
    """Compile one build. Raises OSError, or subprocess.CalledProcessError with the compiler's output in `stderr`."""
    made = target.with_suffix(f".{os.getpid()}")
    files = [str(builds.FOLDER / name) for name in sources]
    try:
        _run([*command, *FLAGS, *hardening(tuple(command)), *flags, *files, "-o", str(made), *LIBRARIES])
        made.replace(target)  # processes that have loaded the old file keep it
    finally:
        made.unlink(missing_ok=True)


def build() -> list[Path]:
    """Compile the probe and all builds for this machine, and return their files; none on a machine without kernels.

    Failed builds are reported on stderr. Raises BuildError if no build succeeded.
    """
    if not builds.kinds():
        return []
    command = compiler()
    if command is None:
        raise BuildError(f"no C compiler was found that can build the kernels. {_advice()}")
    wanted = {builds.PROBE: ((), PROBE_SOURCES)} | {
        name: (kind.flags, SOURCES) for name, kind in builds.kinds().items()
    }
    built, failure = [], ""
    for name, (flags, sources) in wanted.items():
        try:
            compile_kind(command, flags, builds.path(name), sources)
        except (OSError, subprocess.CalledProcessError) as error:
            failure = f"{builds.path(name).name} was not built ({error}): {getattr(error, 'stderr', '')[-2000:]}"
            _say(failure)
        else:
            built.append(builds.path(name))
    if len(built) < 2 or built[0] != builds.path(builds.PROBE):
        raise BuildError(f"{shlex.join(command)} built no kernels. {_advice()}\n{failure}")
    return built


def _run(arguments: list[str]) -> None:
    """Run a compiler. Raises OSError or subprocess.CalledProcessError."""
    subprocess.run(arguments, check=True, capture_output=True, text=True, env=_environment())


@cache
def _environment() -> dict[str, str]:
    """The compiler's environment. Zig's caches, 100 MB, are in a folder that goes when this process ends."""
    folder = mkdtemp(prefix="mercury-zig-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder, **os.environ}


def _advice() -> str:
    """How to get a compiler, from a clone as from an index."""
    given = "Unset CC" if os.environ.get("CC") else _INSTALL.get(sys.platform, "Install gcc or clang")
    return f"{given}, or install Zig (pip install ziglang). Then run the same command again."


def _say(text: str) -> None:
    print(f"mercury-lsp: {text}", file=sys.stderr)


if __name__ == "__main__":
    try:
        files = build()
    except BuildError as error:
        sys.exit(f"mercury-lsp: {error}")
    if not files:
        sys.exit(f"mercury-lsp: there are no C kernels for {builds.machine()}. {builds.NEEDED}")
    for each in files:
        print(each)
