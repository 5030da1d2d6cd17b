"""Pack a corpus into one small file: `python -m mercury_lab.training pack --corpus DIR --out FILE --limit-mb 55`.

The file can be used wherever a corpus folder can. It holds the whole corpus if that fits; otherwise Python fills half
of it and the other languages share the rest evenly; languages that need less than their part are kept whole.
The format is described in mercury_lab.training.data.shard.
"""

import argparse
import hashlib
from collections import Counter
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import tokenizers
from mercury_engine.model_folders import BUNDLED_MODEL
from mercury_engine.prompt.tokenizer import Tokenizer
from rich.progress import track

from mercury_lab.training.data import shard
from mercury_lab.training.data.build import print_totals
from mercury_lab.training.data.corpus import Corpus, SourceFile, read_manifest, replace_file
from mercury_lab.training.data.shard import ShardEntry, ShardTokens, Speller
from mercury_lab.training.data.sources import SourceError

MEGABYTE = 1_000_000
"""Bytes."""

PYTHON_SHARE = 0.5
"""Share of the shard for Python when the corpus does not fit."""

FIRST_GUESS_RATIO = 6.6
"""Bytes of text per byte of shard, for the first attempt."""

GUESS_MARGIN = 0.985
"""Share of the limit that later attempts aim at; they extrapolate from the size of the last one."""

MIN_FILL = 0.95
"""Share of the limit at which a sample is large enough."""

MAX_ATTEMPTS = 3
"""Attempts after which any sample that fits is accepted."""


def shares(sizes: dict[str, int], room: float) -> dict[str, float]:
    """Bytes of text for each language; their sum is `room`, or the whole corpus if that is smaller."""
    others = {language: size for language, size in sizes.items() if language != "python"}
    given = {"python": min(sizes.get("python", 0), max(PYTHON_SHARE * room, room - sum(others.values())))}
    left = room - given["python"]
    for number, (language, size) in enumerate(sorted(others.items(), key=lambda item: item[1])):
        given[language] = min(size, left / (len(others) - number))
        left -= given[language]
    return given


def sample_to_size(files: list[SourceFile], room: float) -> list[SourceFile]:
    """Files of together at most `room` bytes, sampled in an arbitrary fixed order, returned in the given order."""
    chosen = set()
    for place, file in sorted(enumerate(files), key=lambda item: hashlib.sha256(item[1].path.encode()).digest()):
        size = len(file.text.encode())
        if size <= room:
            chosen.add(place)
            room -= size
    return [file for place, file in enumerate(files) if place in chosen]


def pack(whole: Corpus, tokenizer: tokenizers.Tokenizer, limit: int) -> bytes:
    """A shard of at most `limit` bytes with the corpus or a balanced sample; raises SourceError if none fits."""
    languages, spell = whole.by_language(), cache(Speller(tokenizer).spell)
    sizes = {language: sum(len(file.text.encode()) for file in files) for language, files in languages.items()}
    known = whole.known.to_bytes() if whole.known else b""
    total, fixed = float(sum(sizes.values())), len(_packed(whole, [], tokenizer, known))
    if fixed >= limit:
        raise SourceError(
            f"tokenizer and fingerprints alone take {fixed / MEGABYTE:.2f} MB; allow more with --limit-mb"
        )
    best, room = b"", min(total, FIRST_GUESS_RATIO * (limit - fixed))
    for attempt in count(1):
        given = shares(sizes, room)
        taken = [file for language, files in languages.items() for file in sample_to_size(files, given[language])]
        spelled = [(file, spell(file.text)) for file in track(taken, "Spelling")]
        content = _packed(whole, spelled, tokenizer, known)
        if len(content) <= limit:
            best = max(best, content, key=len)
        if best and (room >= total or len(best) >= MIN_FILL * limit or attempt >= MAX_ATTEMPTS):
            break
        room = min(total, room * GUESS_MARGIN * (limit - fixed) / max(1, len(content) - fixed))
    return best


def _packed(
    whole: Corpus, chosen: list[tuple[SourceFile, ShardTokens | None]], tokenizer: tokenizers.Tokenizer, known: bytes
) -> bytes:
    records = [(_record(file), tokens) for file, tokens in chosen]
    return shard.pack_sections(
        shard.sections_of(records, tokenizer, known), _manifest(whole, [file for file, _ in chosen])
    )


def _record(file: SourceFile) -> ShardEntry:
    return ShardEntry(path=file.path, package=file.package, language=file.language, text=file.text)


def _manifest(whole: Corpus, files: list[SourceFile]) -> dict[str, Any]:
    """A folder's manifest for the packed files; `of` holds the totals of the whole corpus."""
    taken = Corpus(files, missing=whole.missing, dropped=whole.dropped, contaminated=whole.contaminated)
    counts, sizes = Counter(file.package for file in files), Counter[str]()
    for file in files:
        sizes[file.package] += len(file.text.encode())
    present = (package for package in whole.packages if counts[package["name"]])
    taken.packages = [p | {"files": counts[p["name"]], "bytes": sizes[p["name"]]} for p in present]
    return taken.manifest() | {"of": whole.manifest()["languages"]}


def main(argv: list[str]) -> int:
    """Write a shard and print its totals."""
    parser = argparse.ArgumentParser(prog="mercury_lab.training pack", description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True, help="a corpus folder or shard")
    parser.add_argument("--out", type=Path, required=True, help="the shard to write")
    parser.add_argument("--limit-mb", type=float, default=55.0, help="size limit of the shard in million bytes")
    parser.add_argument(
        "--tokenizer",
        type=Path,
        default=BUNDLED_MODEL,
        help="model folder of the tokenizer (default: the bundled model)",
    )
    options = parser.parse_args(argv)
    whole = Corpus.load(options.corpus)
    content = pack(whole, Tokenizer(options.tokenizer).bpe, int(options.limit_mb * MEGABYTE))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    replace_file(options.out, content)
    print_totals(whole)
    _print_packed(options.out, read_manifest(options.out))
    return 0


def _print_packed(path: Path, manifest: dict[str, Any]) -> None:
    for language, totals in manifest["languages"].items():
        parts = f"{totals['bytes'] / MEGABYTE:8.2f} of {manifest['of'][language]['bytes'] / MEGABYTE:8.2f} MB"
        print(f"packed {language:12} {parts}")
    text = sum(totals["bytes"] for totals in manifest["languages"].values())
    size = path.stat().st_size
    print(f"{path}: {size / MEGABYTE:.2f} MB for {text / MEGABYTE:.2f} MB of text ({text / size:.2f} to 1)")
