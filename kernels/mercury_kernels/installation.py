"""The commands that replace or extend this installation, for pip or uv, from a clone or from an index."""

import json
import shlex
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

NAME = "mercury-lsp"

_CLONE = Path(__file__).resolve().parents[2]
"""The clone's folder, if this file is in one."""


def install_command(extra: str) -> str:
    """The command that adds an extra's packages to this installation."""
    return _command([], extra)


def reinstall_command() -> str:
    """The command that builds or downloads this program again, without its dependencies."""
    again = ["--reinstall", "--no-cache"] if _installer() == "uv" else ["--force-reinstall", "--no-cache-dir"]
    return _command([*again, "--no-deps"], None)


def _command(options: list[str], extra: str | None) -> str:
    pip = [sys.executable, "-m", "pip", "install"]
    start = ["uv", "pip", "install", "--python", sys.executable] if _installer() == "uv" else pip
    arguments = [*start, *options, *_origin(f"[{extra}]" if extra else "")]
    return subprocess.list2cmdline(arguments) if sys.platform == "win32" else shlex.join(arguments)


def _origin(extra: str) -> list[str]:
    """What this was installed from, as arguments for pip: a folder, a URL or the project's name."""
    if all((_CLONE / name).is_file() for name in ("pyproject.toml", "hatch_build.py")):
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
    return ((found.read_text("INSTALLER") if found else None) or "pip").strip()


def _distribution() -> Distribution | None:
    try:
        return distribution(NAME)
    except PackageNotFoundError:
        return None
