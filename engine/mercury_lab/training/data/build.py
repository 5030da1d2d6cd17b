"""Build the training corpus: permissively licensed packages, filtered, without the held-out repositories.

`python -m mercury_lab.training corpus --out DIR` writes a corpus folder (see mercury_lab.training.data.corpus), and the
repositories kept for evaluation to held_out beside it, unless they are there. The same sources give the same bytes.
Archives stay in DIR/archives, so that an interrupted build can resume.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from rich.progress import track

from mercury_lab.training.data import sources
from mercury_lab.training.data.contamination import Fingerprints
from mercury_lab.training.data.corpus import MANIFEST, Corpus, assert_no_held_out, read_files
from mercury_lab.training.data.duplicates import Duplicates
from mercury_lab.training.data.selection import select
from mercury_lab.training.data.sources import PackageSource, SourceError

CONCURRENT_DOWNLOADS = 4


def build_held_out(folder: Path) -> Corpus:
    """Write the repositories kept for evaluation to `folder`, without caps."""
    corpus = Corpus()
    _collect(corpus, sources.load().held_out, folder, Duplicates(), frozenset(), None)
    corpus.write(folder)
    return corpus


def build_corpus(folder: Path, held_out: Path) -> Corpus:
    """Write the corpus to `folder`, without the text of the held-out set in `held_out`, which is built if missing."""
    listed = sources.load()
    if not (held_out / MANIFEST).is_file():
        lost = build_held_out(held_out).missing
        if lost:
            (held_out / MANIFEST).unlink()
            raise SourceError(
                f"the held-out set is incomplete, so the corpus cannot be checked against it: {lost[0]['reason']}"
            )
    kept_out = [file.text for file in read_files(held_out)]
    duplicates = Duplicates()
    for text in kept_out:
        duplicates.add(text)
    corpus = Corpus()
    _collect(corpus, listed.training, folder, duplicates, listed.held_names, listed.caps)
    everything = chain(kept_out, (file.text for file in corpus.files))
    corpus.keep_out(Fingerprints.of(kept_out).without_common(everything))
    corpus.write(folder)
    return corpus


def _collect(
    corpus: Corpus,
    chosen: Iterable[PackageSource],
    folder: Path,
    duplicates: Duplicates,
    names: frozenset[str],
    caps: dict[str, int] | None,
) -> None:
    """Add the selected files of the sources, registry by registry, Python first; list missing sources."""
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
    """Every source in order with its archive, or the error that prevented it; threads download ahead."""

    def fetch(source: PackageSource) -> Path | SourceError:
        try:
            return sources.fetch(source, folder)
        except SourceError as error:
            return error

    with ThreadPoolExecutor(CONCURRENT_DOWNLOADS) as pool:
        fetched = zip(chosen, pool.map(fetch, chosen), strict=True)
        yield from track(fetched, "Reading packages", total=len(chosen))


def main(argv: list[str] | None = None) -> int:
    """Build a corpus and print its totals; returns 1 if a source is missing."""
    parser = argparse.ArgumentParser(prog="mercury_lab.training corpus", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the corpus and its archives")
    parser.add_argument("--held-out", action="store_true", help="build the repositories kept for evaluation instead")
    options = parser.parse_args(argv)
    if options.held_out:
        corpus = build_held_out(options.out)
    else:
        corpus = build_corpus(options.out, options.out.with_name("held_out"))
        assert_no_held_out(options.out)
    print_totals(corpus)
    return 1 if corpus.missing else 0


def print_totals(corpus: Corpus) -> None:
    """Print totals and missing sources."""
    manifest = corpus.manifest()
    for language, totals in manifest["languages"].items():
        print(f"{language:12} {totals['files']:6} files {totals['bytes'] / 1e6:8.2f} MB")
    for reason, count in manifest["dropped"].items():
        print(f"dropped {count:6} {reason}")
    for entry in corpus.missing:
        print(f"missing: {entry['reason']}", file=sys.stderr)
