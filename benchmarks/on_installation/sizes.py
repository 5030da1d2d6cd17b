"""The disk space that an installation takes."""

import subprocess
import sys
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

LARGEST = 10
"""Distributions that a record lists."""

OF_THE_FOLDER = {"pip", "setuptools"}
"""Distributions that a virtual environment brings itself."""


def built_wheel(source: Path, folder: Path) -> Path:
    """The project's wheel, built into an empty folder."""
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source))
    subprocess.run(command, check=True, stdout=sys.stderr)
    return next(folder.glob("*.whl"))


def fresh_environment(folder: Path, wheel: Path, constraints: Path | None) -> Path:
    """A new virtual environment with the wheel and what it depends on."""
    subprocess.run((sys.executable, "-m", "venv", str(folder)), check=True)
    pinned = () if constraints is None else ("--constraint", str(constraints))
    subprocess.run(
        (str(folder / "bin" / "pip"), "install", "--quiet", *pinned, str(wheel)), check=True, stdout=sys.stderr
    )
    return folder


def installed(environment: Path) -> dict[str, Any]:
    """MB of an environment's distributions, in total and for the largest, each with its bytecode."""
    sizes: Counter[str] = Counter()
    for found in distributions(path=[str(each) for each in environment.glob("lib/python*/site-packages")]):
        if found.name not in OF_THE_FOLDER:
            paths = (Path(str(found.locate_file(file))) for file in found.files or ())
            sizes[found.name] += sum(path.stat().st_size for path in paths if path.is_file())
    return {
        "installed_mb": megabytes(sizes.total()),
        "distributions": len(sizes),
        "largest_mb": {name: megabytes(size) for name, size in sizes.most_common(LARGEST)},
    }


def megabytes(size: int) -> float:
    """Bytes as MB of a million, as package indexes count."""
    return round(size / 1e6, 1)
