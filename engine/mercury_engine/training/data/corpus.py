"""The training corpus: permissively licensed packages, filtered, held-out repositories kept out.

`python -m mercury_engine.training corpus --out DIR` writes DIR/{language}.jsonl.gz, one file a line as {"path",
"package", "text"}, DIR/held_out.bin, what tells text of the held-out repositories, and DIR/manifest.json with every
package, its version, licence and share. The same sources give the same bytes. Archives stay in DIR/archives, so a
build that was cut short goes on. `--installed` takes the Python distributions of an environment instead, without
network. A corpus may also be one file, see mercury_engine.training.data.pack.
"""

import argparse
import gzip
import hashlib
import json
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from rich.progress import track

from mercury_engine.training.data import installed, shard, sources
from mercury_engine.training.data.contamination import Fingerprints
from mercury_engine.training.data.duplicates import Duplicates
from mercury_engine.training.data.selection import select
from mercury_engine.training.data.sources import HeldOut, PackageSource, SourceError
from mercury_engine.training.data.sources import SourceFile as SourceFile

MANIFEST = "manifest.json"
FINGERPRINTS = "held_out.bin"
CONCURRENT_DOWNLOADS = 4


@dataclass(slots=True)
class Corpus:
    """Files kept so far, with what the manifest says of them; `known`: fingerprints of the held-out files."""

    files: list[SourceFile] = field(default_factory=list)
    packages: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    contaminated: list[str] = field(default_factory=list)
    known: Fingerprints | None = None

    @classmethod
    def load(cls, path: Path) -> "Corpus":
        """A corpus folder or shard, in memory; raises HeldOut as read_checked does."""
        return cls(read_checked(path), read_manifest(path).get("packages", []), known=read_fingerprints(path))

    def add(self, source: PackageSource, found: list[SourceFile]) -> None:
        self.packages.append(asdict(source) | _totals(found))
        self.files += found

    def keep_out(self, known: Fingerprints) -> None:
        """Drop files that hold held-out text, and remember by what they were told."""
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
        """The files of every language, languages by name, files in their order."""
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
        """Replace the language files and the manifest; readers see the old or the new, never half a file."""
        folder.mkdir(parents=True, exist_ok=True)
        told = self.manifest()
        for language, files in self.by_language().items():
            packed = gzip.compress(b"".join(map(_line, files)), 6, mtime=0)
            _replace(folder / f"{language}.jsonl.gz", packed)
            told["languages"][language]["sha256"] = hashlib.sha256(packed).hexdigest()
        if self.known:
            _replace(folder / FINGERPRINTS, self.known.to_bytes())
        _replace(folder / MANIFEST, json.dumps(told, indent=1).encode())


def _totals(files: list[SourceFile]) -> dict[str, Any]:
    return {"files": len(files), "bytes": sum(len(file.text.encode()) for file in files)}


def _line(file: SourceFile) -> bytes:
    record = {"path": file.path, "package": file.package, "text": file.text}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


def build_held_out(folder: Path, *, near: bool = True) -> Corpus:
    """Write the repositories kept for evaluation, uncapped, to `folder`."""
    corpus = Corpus()
    _collect(corpus, sources.load().held_out, folder, Duplicates(near), frozenset(), None)
    corpus.write(folder)
    return corpus


def build(folder: Path, held_out: Path, *, near: bool = True) -> Corpus:
    """Write the corpus to `folder`, without what is held out: text of the set in `held_out`, built if missing."""
    listed = sources.load()
    if not held_out.is_file() and not (held_out / MANIFEST).is_file():
        lost = build_held_out(held_out, near=near).missing
        if lost:
            (held_out / MANIFEST).unlink()
            raise SourceError(
                f"the held-out set is incomplete, so nothing can be checked against it: {lost[0]['reason']}"
            )
    kept_out = [file.text for file in read_files(held_out)]
    duplicates = Duplicates(near)
    for text in kept_out:
        duplicates.add(text)
    corpus = Corpus()
    _collect(corpus, listed.training, folder, duplicates, listed.held_names, listed.caps)
    everything = chain(kept_out, (file.text for file in corpus.files))
    corpus.keep_out(Fingerprints.of(kept_out).without_common(everything))
    corpus.write(folder)
    return corpus


def build_installed(environment: Path | None = None, onto: Path | None = None, *, near: bool = True) -> Corpus:
    """The Python files of an environment's distributions, after those of the corpus `onto`.

    They are judged by what `onto` knows of held-out text. Distributions of another licence and those kept for
    evaluation are named as missing.
    """
    listed = sources.load()
    corpus = Corpus.load(onto) if onto else Corpus()
    duplicates = Duplicates(near)
    for file in corpus.files:
        duplicates.add(file.text)
    for distribution in track(installed.distributions(environment), "Reading distributions"):
        source = PackageSource(
            "installed", distribution.name, distribution.version, installed.licence_of(distribution) or ""
        )
        held = sources.normalised_name(source.name) in listed.held_names
        if held or not source.licence:
            reason = "is kept for evaluation" if held else "has no licence that is known to be permissive"
            corpus.missing.append({**asdict(source), "reason": f"{source.name} {reason}"})
            continue
        found = installed.distribution_files(distribution)
        corpus.add(source, select(source, found, duplicates, listed.held_names, listed.caps, corpus.dropped))
    if corpus.known:
        corpus.keep_out(corpus.known)
    return corpus


def _collect(
    corpus: Corpus,
    chosen: Iterable[PackageSource],
    folder: Path,
    duplicates: Duplicates,
    names: frozenset[str],
    caps: dict[str, int] | None,
) -> None:
    """Add what is worth keeping of the sources, registry by registry, Python first; name what is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for registry in sources.REGISTRIES:
        of_registry = [source for source in chosen if source.registry == registry]
        for source, archive in _archives(of_registry, folder / "archives"):
            if isinstance(archive, SourceError):
                corpus.missing.append({**asdict(source), "reason": str(archive)})
                continue
            found = sources.archive_files(source, archive)
            corpus.add(source, select(source, found, duplicates, names, caps, corpus.dropped))


def _archives(chosen: list[PackageSource], folder: Path) -> Iterator[tuple[PackageSource, Path | SourceError]]:
    """Every source in order with its archive, or the reason why there is none; fetched ahead in threads."""

    def fetch(source: PackageSource) -> Path | SourceError:
        try:
            return sources.fetch(source, folder)
        except SourceError as error:
            return error

    with ThreadPoolExecutor(CONCURRENT_DOWNLOADS) as pool:
        fetched = zip(chosen, pool.map(fetch, chosen), strict=True)
        yield from track(fetched, "Reading packages", total=len(chosen))


def read_manifest(path: Path) -> dict[str, Any]:
    """What a corpus folder or shard says of itself."""
    if path.is_file():
        return shard.read_manifest(path)
    if not (path / MANIFEST).is_file():
        raise SourceError(f"no corpus in {path}; build one with `mercury_engine.training corpus --out {path}`")
    return json.loads((path / MANIFEST).read_bytes())


def read_fingerprints(path: Path) -> Fingerprints | None:
    """What a corpus folder or shard knows of the held-out files; None if it was made without them."""
    stored = path / FINGERPRINTS
    packed = (
        shard.read_section(path, "held_out") if path.is_file() else stored.read_bytes() if stored.is_file() else b""
    )
    return Fingerprints.from_bytes(packed) if packed else None


def read_files(path: Path, languages: Iterable[str] | None = None) -> Iterator[SourceFile]:
    """The files of a corpus folder or shard, language by language; all languages by default."""
    wanted = sorted(read_manifest(path)["languages"]) if languages is None else list(languages)
    if path.is_file():
        yield from (SourceFile(**record) for record in shard.read_entries(path) if record["language"] in wanted)
        return
    for language in wanted:
        stored = path / f"{language}.jsonl.gz"
        try:
            with gzip.open(stored, "rt", encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    yield SourceFile(language=language, **json.loads(line))
        except (OSError, EOFError, zlib.error, ValueError, TypeError) as error:
            raise SourceError(f"{stored} cannot be read ({error}); build the corpus again") from error


def read_checked(path: Path) -> list[SourceFile]:
    """All files of a corpus folder or shard; raises HeldOut, naming file and package, if any may not be trained on.

    Held-out names are looked for always, held-out text where the corpus says what it looks like; a warning says
    where it does not.
    """
    names, known, files = sources.load().held_names, read_fingerprints(path), list(read_files(path))
    if known is None:
        print(f"warning: {path} knows no held-out text, only names are checked; build it again", file=sys.stderr)
    for file in files:
        name = sources.held_out_in(file.package, names) or sources.held_out_in(file.path, names)
        fault = f"{name} is kept for evaluation" if name else known and known.fault(file.text)
        if fault:
            raise HeldOut(f"{fault}: {path} holds {file.path} of {file.package}; build it again")
    return files


def assert_no_held_out(path: Path) -> None:
    """Raise HeldOut as read_checked does, and keep nothing."""
    read_checked(path)


def main(argv: list[str] | None = None) -> int:
    """Build a corpus and print its totals; 1 if a source could not be had."""
    parser = argparse.ArgumentParser(prog="mercury_engine.training corpus", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the corpus and its archives")
    parser.add_argument("--held-out", action="store_true", help="build the repositories kept for evaluation instead")
    parser.add_argument("--held-out-set", type=Path, help="folder of these, built if missing (held_out beside --out)")
    parser.add_argument("--installed", action="store_true", help="take what is installed instead; needs no network")
    parser.add_argument("--environment", type=Path, help="whose distributions to take (this interpreter's)")
    parser.add_argument("--onto", type=Path, help="a corpus folder or shard to add what is installed to")
    parser.add_argument("--near-dedup", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args(argv)
    if not options.installed and (options.environment or options.onto):
        parser.error("--environment and --onto go with --installed")
    if options.held_out:
        corpus = build_held_out(options.out, near=options.near_dedup)
    elif options.installed:
        corpus = build_installed(options.environment, options.onto, near=options.near_dedup)
        corpus.write(options.out)
    else:
        beside = options.out.with_name("held_out")
        corpus = build(options.out, options.held_out_set or beside, near=options.near_dedup)
    if not options.held_out:
        assert_no_held_out(options.out)
    return print_totals(corpus, complete=options.installed)


def print_totals(corpus: Corpus, *, complete: bool = False) -> int:
    """Print totals and what is missing; 1 if that is a fault, which it is not where it was left out on purpose."""
    told = corpus.manifest()
    for language, totals in told["languages"].items():
        print(f"{language:12} {totals['files']:6} files {totals['bytes'] / 1e6:8.2f} MB")
    for reason, count in told["dropped"].items():
        print(f"dropped {count:6} {reason}")
    for entry in corpus.missing:
        print(f"missing: {entry['reason']}", file=sys.stderr)
    return 1 if corpus.missing and not complete else 0
