"""Files in pieces: for machines that take a limited number of bytes at a time, and give as little back."""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

MIB = 1 << 20

MANIFEST = "manifest.json"
"""In every folder of pieces: the number of pieces and the SHA-256 digest of each whole file, by name."""

Pieces = Iterator[tuple[str, bytes]]
"""Name and content of each piece."""


def pack(files: dict[str, Path], folder: Path, limit: int) -> list[Path]:
    """Cut files into pieces, and fill folders 01, 02 ... of at most `limit` bytes each, to be sent one after the other.

    Keys are the names under which `receive` puts the files; they may contain slashes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folders, room, manifest = list[Path](), 0, dict[str, list[object]]()
    for name, path in files.items():
        content, number = path.read_bytes(), 0
        while content or not number:
            if not room:
                folders.append(folder / f"{len(folders) + 1:02}")
                folders[-1].mkdir()
                room = limit
            (folders[-1] / _piece(name, number)).write_bytes(content[:room])
            room, content, number = max(0, room - len(content)), content[room:], number + 1
        manifest[name] = [number, _digest(path)]
    for each in folders:
        (each / MANIFEST).write_text(json.dumps(manifest))
    return folders


def receive(folder: Path, into: Path) -> list[str]:
    """Take the pieces of a folder, and join each file that is complete; returns the names of those still missing.

    Raises ValueError if a joined file has another digest than the packed one; its pieces are deleted.
    """
    store = into / "pieces"
    store.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        shutil.copyfile(path, store / path.name)
    manifest = json.loads((store / MANIFEST).read_text())
    missing = []
    for name, (count, digest) in manifest.items():
        parts = [store / _piece(name, number) for number in range(count)]
        if not (into / name).is_file():
            if all(part.is_file() for part in parts):
                _join(parts, into / name, digest)
            else:
                missing.append(name)
    return missing


def cut(path: Path, folder: Path, limit: int) -> list[Path]:
    """Copy a file into a folder, in pieces NAME.00, NAME.01 ... if it is larger than `limit` bytes."""
    if path.stat().st_size <= limit:
        return [Path(shutil.copy(path, folder / path.name))]
    made = []
    content = path.read_bytes()
    for number, start in enumerate(range(0, len(content), limit)):
        made.append(folder / f"{path.name}.{number:02}")
        made[-1].write_bytes(content[start : start + limit])
    return made


def _join(parts: Iterable[Path], path: Path, digest: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".part")
    with scratch.open("wb") as whole:
        for part in parts:
            whole.write(part.read_bytes())
            part.unlink()
    if _digest(scratch) != digest:
        scratch.unlink()
        raise ValueError(f"{path.name} arrived damaged; send its pieces again")
    scratch.replace(path)


def _piece(name: str, number: int) -> str:
    return f"{name.replace('/', '--')}.{number:03}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
