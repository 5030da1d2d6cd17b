"""A corpus: in memory, and as a folder.

A folder holds {language}.jsonl.gz with one file per line as {"path", "package", "text"}; held_out.bin, the fingerprints
of the held-out repositories; and manifest.json with every package, its version, licence and share.
"""

import gzip
import hashlib
import json
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import track

from mercury_lab.training.data import sources
from mercury_lab.training.data.contamination import Fingerprints
from mercury_lab.training.data.sources import HeldOut, PackageSource, SourceError
from mercury_lab.training.data.sources import SourceFile as SourceFile

MANIFEST = "manifest.json"
FINGERPRINTS = "held_out.bin"


@dataclass(slots=True)
class Corpus:
    """The files kept so far, and the facts for the manifest; `known` are the fingerprints of the held-out files."""

    files: list[SourceFile] = field(default_factory=list)
    packages: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    contaminated: list[str] = field(default_factory=list)
    known: Fingerprints | None = None

    def add(self, source: PackageSource, found: list[SourceFile]) -> None:
        self.packages.append(asdict(source) | _totals(found))
        self.files += found

    def keep_out(self, known: Fingerprints) -> None:
        """Drop files that contain held-out text, count the reasons, and keep the fingerprints."""
        self.known = known
        kept: list[SourceFile] = []
        for file in track(self.files, "Looking for held-out text"):
            fault = known.fault(file.text)
            if fault is None:
                kept.append(file)
                continue
            self.dropped[fault] += 1
            self.contaminated.append(file.path)
            for package in [entry for entry in self.packages if entry["name"] == file.package][:1]:
                package["files"] -= 1
                package["bytes"] -= len(file.text.encode())
        self.files = kept

    def by_language(self) -> dict[str, list[SourceFile]]:
        """The files of every language: languages by name, files in order."""
        found: defaultdict[str, list[SourceFile]] = defaultdict(list)
        for file in self.files:
            found[file.language].append(file)
        return dict(sorted(found.items()))

    def manifest(self) -> dict[str, Any]:
        return {
            "languages": {language: _totals(files) for language, files in self.by_language().items()},
            "packages": self.packages,
            "missing": self.missing,
            "dropped": dict(sorted(self.dropped.items())),
            "contaminated": sorted(self.contaminated),
        }

    def write(self, folder: Path) -> None:
        """Replace the language files, the fingerprints and the manifest."""
        folder.mkdir(parents=True, exist_ok=True)
        manifest = self.manifest()
        for language, files in self.by_language().items():
            packed = gzip.compress(b"".join(map(_line, files)), 6, mtime=0)
            replace_file(folder / f"{language}.jsonl.gz", packed)
            manifest["languages"][language]["sha256"] = hashlib.sha256(packed).hexdigest()
        if self.known:
            replace_file(folder / FINGERPRINTS, self.known.to_bytes())
        replace_file(folder / MANIFEST, json.dumps(manifest, indent=1).encode())


def _totals(files: list[SourceFile]) -> dict[str, Any]:
    return {"files": len(files), "bytes": sum(len(file.text.encode()) for file in files)}


def _line(file: SourceFile) -> bytes:
    record = {"path": file.path, "package": file.package, "text": file.text}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old content or the new, never a part."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a corpus folder; raises SourceError."""
    if not (path / MANIFEST).is_file():
        raise SourceError(f"no corpus in {path}; build one with `mercury_lab.training corpus --out {path}`")
    return json.loads((path / MANIFEST).read_bytes())


def read_fingerprints(path: Path) -> Fingerprints | None:
    """The fingerprints of the held-out files in a corpus folder; None if it was made without them."""
    stored = path / FINGERPRINTS
    return Fingerprints.from_bytes(stored.read_bytes()) if stored.is_file() else None


def read_files(path: Path) -> Iterator[SourceFile]:
    """The files of a corpus folder, language by language. Raises SourceError."""
    for language in sorted(read_manifest(path)["languages"]):
        stored = path / f"{language}.jsonl.gz"
        try:
            with gzip.open(stored, "rt", encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    yield SourceFile(language=language, **json.loads(line))
        except (OSError, EOFError, zlib.error, ValueError, TypeError) as error:
            raise SourceError(f"{stored} cannot be read ({error}); build the corpus again") from error


def read_checked(path: Path) -> list[SourceFile]:
    """All files of a corpus folder; raises HeldOut, naming file and package, if one may not be trained on.

    Held-out names are always checked, held-out text only if the corpus has fingerprints; a warning says if it has none.
    """
    names, known, files = sources.load().held_names, read_fingerprints(path), list(read_files(path))
    if known is None:
        print(
            f"warning: {path} has no fingerprints of held-out text, only names are checked; build it again",
            file=sys.stderr,
        )
    for file in files:
        name = sources.held_out_in(file.package, names) or sources.held_out_in(file.path, names)
        fault = f"{name} is kept for evaluation" if name else known and known.fault(file.text)
        if fault:
            raise HeldOut(f"{fault}: {path} holds {file.path} of {file.package}; build it again")
    return files


def assert_no_held_out(path: Path) -> None:
    """Raise HeldOut as `read_checked` does, without keeping the files."""
    read_checked(path)
