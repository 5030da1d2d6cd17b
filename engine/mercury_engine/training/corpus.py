"""The training corpus: permissively licensed packages, filtered, held-out repositories kept out.

`python -m mercury_engine.training.corpus --out DIR` writes DIR/{language}.jsonl.gz, one file a line
as {"path", "package", "text"}, and DIR/manifest.json with every package, its version, licence and share.
The same sources give the same bytes. Archives stay in DIR/archives, so a build that was cut short goes on.
"""

import argparse
import gzip
import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from rich.progress import track

from mercury_engine.training import filters, sources
from mercury_engine.training.sources import HeldOut, Source, SourceError

MANIFEST = "manifest.json"
DOWNLOADS = 4
PERMUTATIONS = 64
SIMILARITY = 0.7
"""Files whose sets of lines have a larger Jaccard index than about this are one file."""

MIN_LINE = 8
"""Shorter lines (brackets, `else:`) say nothing about likeness."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of the corpus; `path` starts with the package's name or import path."""

    path: str
    package: str
    language: str
    text: str


@dataclass(slots=True)
class Duplicates:
    """Remembers texts; `near` also finds those that share most lines (MinHash, datasketch)."""

    near: bool = True
    _seen: set[bytes] = field(default_factory=set)
    _index: Any = None

    def add(self, text: str) -> str | None:
        """Remember the text; "duplicate" or "near duplicate" if it was known before, else None."""
        digest = hashlib.sha256(" ".join(text.split()).encode()).digest()
        if digest in self._seen:
            return "duplicate"
        self._seen.add(digest)
        return "near duplicate" if self.near and self._is_near(digest, text) else None

    def _is_near(self, key: bytes, text: str) -> bool:
        from datasketch import MinHash, MinHashLSH

        if not isinstance(self._index, MinHashLSH):
            self._index = MinHashLSH(threshold=SIMILARITY, num_perm=PERMUTATIONS)
        lines = {line.strip() for line in text.splitlines()}
        hashes = sorted(crc32(line.encode()) for line in lines if len(line) >= MIN_LINE)
        if not hashes:
            return False
        signature = MinHash(num_perm=PERMUTATIONS, hashfunc=int)
        signature.update_batch(hashes)
        known = bool(self._index.query(signature))
        if not known:
            self._index.insert(key, signature)
        return known


@dataclass(slots=True)
class Corpus:
    """Files kept so far, with counts of what was kept and dropped for the manifest."""

    files: list[SourceFile] = field(default_factory=list)
    packages: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    def add(self, source: Source, found: list[SourceFile]) -> None:
        size = sum(len(file.text.encode()) for file in found)
        self.packages.append({**asdict(source), "files": len(found), "bytes": size})
        self.files += found

    def write(self, folder: Path) -> None:
        """Replace the language files and the manifest; readers see the old or the new, never half a file."""
        by_language: defaultdict[str, list[SourceFile]] = defaultdict(list)
        for file in self.files:
            by_language[file.language].append(file)
        languages = {}
        for language, files in sorted(by_language.items()):
            lines = [_line(file) for file in files]
            packed = gzip.compress(b"".join(lines), 6, mtime=0)
            _replace(folder / f"{language}.jsonl.gz", packed)
            size = sum(len(file.text.encode()) for file in files)
            languages[language] = {
                "files": len(files),
                "bytes": size,
                "sha256": hashlib.sha256(packed).hexdigest(),
            }
        manifest = {
            "languages": languages,
            "packages": self.packages,
            "missing": self.missing,
            "dropped": dict(sorted(self.dropped.items())),
        }
        _replace(folder / MANIFEST, json.dumps(manifest, indent=1).encode())


def _line(file: SourceFile) -> bytes:
    record = {"path": file.path, "package": file.package, "text": file.text}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


def select(
    source: Source,
    files: Iterable[tuple[str, bytes]],
    duplicates: Duplicates,
    held_names: frozenset[str] = frozenset(),
    caps: dict[str, int] | None = None,
    dropped: Counter[str] | None = None,
) -> list[SourceFile]:
    """The files of a package that are worth keeping, by path; why others are not is counted in `dropped`.

    `caps` (bytes by language, or "default") are filled with other files before tests, else in an arbitrary
    fixed order, so that a cut takes from all parts of a package.
    """
    dropped = Counter() if dropped is None else dropped
    room = defaultdict(lambda: caps["default"] if caps else sys.maxsize, caps or {})
    kept = []
    for path, content in sorted(files, key=lambda item: _rank(item[0])):
        language = filters.language_of(path, content)
        if language is None:
            continue
        text, fault = _judge(path, content, language, held_names)
        size = len(text.encode())
        if not fault and size > room[language]:
            fault = "over the cap"
        fault = fault or duplicates.add(text)
        if fault:
            dropped[fault] += 1
            continue
        room[language] -= size
        kept.append(SourceFile(path, source.name, language, text))
    return sorted(kept, key=lambda file: file.path)


def _rank(path: str) -> tuple[bool, bytes]:
    return filters.is_test(path), hashlib.sha256(path.encode()).digest()


def _judge(path: str, content: bytes, language: str, held_names: frozenset[str]) -> tuple[str, str | None]:
    """The text, and why it is left out, if it is."""
    if sources.held_out_in(path, held_names):
        return "", "held out"
    if fault := filters.path_fault(path, language):
        return "", fault
    text = filters.text_of(content, language)
    return ("", "large or not UTF-8") if text is None else (text, filters.text_fault(text))


def build(folder: Path, *, held_out: bool = False, near: bool = True, against: Path | None = None) -> Corpus:
    """Write the corpus (or the held-out repositories, uncapped) to `folder`, Python first.

    Files that are also in the corpus at `against`, exactly or nearly, are left out.
    """
    listed = sources.load()
    chosen = listed.held_out if held_out else listed.training
    duplicates = Duplicates(near)
    for file in read(against) if against else ():
        duplicates.add(file.text)
    corpus = Corpus()
    folder.mkdir(parents=True, exist_ok=True)
    for registry in sources.REGISTRIES:
        of_registry = [source for source in chosen if source.registry == registry]
        for source, archive in _archives(of_registry, folder / "archives"):
            if isinstance(archive, SourceError):
                corpus.missing.append({**asdict(source), "reason": str(archive)})
                continue
            names, caps = (frozenset(), None) if held_out else (listed.held_names, listed.caps)
            members = sources.files(source, archive)
            corpus.add(source, select(source, members, duplicates, names, caps, corpus.dropped))
        corpus.write(folder)
    return corpus


def _archives(chosen: list[Source], folder: Path) -> Iterator[tuple[Source, Path | SourceError]]:
    """Every source in order with its archive, or the reason why there is none; fetched ahead in threads."""

    def fetch(source: Source) -> Path | SourceError:
        try:
            return sources.fetch(source, folder)
        except SourceError as error:
            return error

    with ThreadPoolExecutor(DOWNLOADS) as pool:
        fetched = zip(chosen, pool.map(fetch, chosen), strict=True)
        yield from track(fetched, "Reading packages", total=len(chosen))


def read(folder: Path, languages: Iterable[str] | None = None) -> Iterator[SourceFile]:
    """The files of a corpus, language by language; all languages by default."""
    wanted = sorted(json.loads((folder / MANIFEST).read_bytes())["languages"]) if languages is None else languages
    for language in wanted:
        with gzip.open(folder / f"{language}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
            for line in lines:
                yield SourceFile(language=language, **json.loads(line))


def assert_no_held_out(folder: Path) -> None:
    """Raise HeldOut, naming the package, if a held-out package or a path with its name is in the corpus."""
    names = sources.load().held_names
    for file in read(folder):
        name = sources.held_out_in(file.package, names) or sources.held_out_in(file.path, names)
        if name:
            raise HeldOut(
                f"{name} is kept for evaluation, but {folder} holds {file.path} of {file.package}; rebuild it"
            )


def main(argv: list[str] | None = None) -> int:
    """Build a corpus and print its totals; 1 if a source was missing."""
    parser = argparse.ArgumentParser(prog="corpus", description="Build the training corpus or the held-out set.")
    parser.add_argument("--out", type=Path, required=True, help="folder for the corpus and its archives")
    parser.add_argument("--held-out", action="store_true", help="build the repositories kept for evaluation instead")
    parser.add_argument("--near-dedup", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--against", type=Path, help="leave out what is in this corpus as well (the held-out one)")
    arguments = parser.parse_args(argv)
    corpus = build(arguments.out, held_out=arguments.held_out, near=arguments.near_dedup, against=arguments.against)
    if not arguments.held_out:
        assert_no_held_out(arguments.out)
    manifest = json.loads((arguments.out / MANIFEST).read_bytes())
    for language, totals in manifest["languages"].items():
        print(f"{language:12} {totals['files']:6} files {totals['bytes'] / 1e6:8.2f} MB")
    for entry in corpus.missing:
        print(f"missing: {entry['reason']}", file=sys.stderr)
    return 1 if corpus.missing else 0


if __name__ == "__main__":
    sys.exit(main())
