"""What is installed, and the commands that replace or extend it, for pip or uv, from a clone or from an index."""

import json
import shlex
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from urllib.parse import unquote, urlsplit

NAME = "mercury-lsp"

TORCH = "torch>=2.13,<2.15"
"""As in pyproject.toml."""

CUDA_INDEX = "https://download.pytorch.org/whl/cu130"

_CLONE = Path(__file__).resolve().parents[2]
"""The clone's folder, if this file is in one."""


def version_of(package: str) -> str | None:
    """The version of an installed package; None if it is not installed."""
    found = _distribution(package)
    return None if found is None else found.version


def install_command(extra: str) -> str:
    """The command that adds an extra's packages to this installation."""
    return _command([], extra)


def cuda_torch_command() -> str:
    """The command that replaces torch by the build for CUDA, which is not the default everywhere."""
    start, again = _pip(), ["--reinstall-package", "torch"] if _installer() == "uv" else ["--force-reinstall"]
    return _joined([*start, *again, TORCH, "--index-url", CUDA_INDEX])


def reinstall_command() -> str:
    """The command that builds or downloads this program again, without its dependencies.

    Beside sources that were never installed, it only compiles: the project's name would install whatever an index has.
    """
    if _distribution() is None and not _is_clone():
        return _joined([sys.executable, str(Path(__file__).resolve().parents[1] / "compile_kernels.py")])
    again = ["--reinstall", "--no-cache"] if _installer() == "uv" else ["--force-reinstall", "--no-cache-dir"]
    return _command([*again, "--no-deps"], None)


def _command(options: list[str], extra: str | None) -> str:
    return _joined([*_pip(), *options, *_origin(f"[{extra}]" if extra else "")])


def _pip() -> list[str]:
    pip = [sys.executable, "-m", "pip", "install"]
    return ["uv", "pip", "install", "--python", sys.executable] if _installer() == "uv" else pip


def _is_clone() -> bool:
    return all((_CLONE / name).is_file() for name in ("pyproject.toml", "hatch_build.py"))


def _joined(arguments: list[str]) -> str:
    return subprocess.list2cmdline(arguments) if sys.platform == "win32" else shlex.join(arguments)


def _origin(extra: str) -> list[str]:
    """What this was installed from, as arguments for pip: a folder, a URL or the project's name."""
    if _is_clone():
        return ["-e", f"{_CLONE}{extra}"]
    found = _distribution()
    origin = json.loads((found.read_text("direct_url.json") if found else None) or "{}")
    url = urlsplit(origin.get("url", ""))
    if url.scheme == "file":
        path = unquote(url.path)
        return [f"{path.removeprefix('/') if sys.platform == 'win32' else path}{extra}"]
    if not url.scheme:
        return [f"{NAME}{extra}"]
    kind = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
    return [f"{NAME}{extra} @ {kind}{url.geturl()}"]


def _installer() -> str:
    found = _distribution()
    if found is None:
        return "pip" if find_spec("pip") or not which("uv") else "uv"
    return (found.read_text("INSTALLER") or "pip").strip()


def _distribution(package: str = NAME) -> Distribution | None:
    try:
        return distribution(package)
    except PackageNotFoundError:
        return None
