"""Plant secrets and look for them in what the model sees: `python benchmarks/planted_secrets.py [--code DIR] [--json]`.

Each format is planted in each of 13 languages in a document of ordinary lines. Then every text is collected that a
prompt, a next edit or the n-gram lookup gets of it, with cursors in and around the secret, and searched for the secret.
Nothing else is cached: the KV cache holds what prompts hold, statistics and logs hold no text.

The other half is the price: which share of the lines of real code in DIR (default: this repository) is hidden, and how
long it takes to check a chunk that was never seen.
"""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mercury_engine.evaluation import suite
from on_all import options as options_of_all
from on_secrets.corpus import LANGUAGES, Planted, corpus, formats
from on_secrets.paths import WAYS, leaks
from rich.table import Table

from mercury_lsp.documents import redaction
from mercury_lsp.documents.chunked_text import ChunkedText
from mercury_lsp.documents.languages import language_of
from mercury_lsp.documents.secret_text.blocks import LINE, secret_lines
from mercury_lsp.documents.secret_text.lines import is_secret_line

SKIPPED = frozenset(("node_modules", ".git", "dist", "build", "vendor"))
MAX_FILE_BYTES = 300_000


def main() -> int:
    parser = options_of_all.parser("planted_secrets", __doc__)
    parser.add_argument("--code", type=Path, default=options_of_all.BENCHMARKS.parent, help="a folder of real code")
    parser.add_argument("--examples", type=int, default=0, help="lines of real code that are hidden, to print")
    options = parser.parse_args()
    record = {
        **planted_record(list(corpus())),
        "ordinary": ordinary_record(options.code, options.examples),
        **options_of_all.circumstances(),
    }
    suite.deliver(record, table(record), options, options_of_all.without_plots)
    return 0 if not record["leaking"] and record["ordinary"]["hidden_share"] <= 0.002 else 1


def planted_record(planted: list[Planted]) -> dict[str, Any]:
    """How many planted secrets are shown: by class and language, by way, and by name."""
    by_class: dict[str, Counter[str]] = defaultdict(Counter)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    ways: Counter[str] = Counter()
    leaking = []
    for each in planted:
        found = leaks(each)
        counts[each.kind][each.language] += 1
        if any(found.values()):
            by_class[each.kind][each.language] += 1
            leaking.append(f"{each.name} in {each.language}")
        ways.update(way for way, count in found.items() if count)
    return {
        "formats": formats(),
        "planted": len(planted),
        "leaking": leaking,
        "ways": {way: ways[way] for way in WAYS},
        "classes": {
            kind: {language: [by_class[kind][language], counts[kind][language]] for language in LANGUAGES}
            for kind in counts
        },
    }


def ordinary_record(folder: Path, examples: int) -> dict[str, Any]:
    """The share of hidden lines of real code by language, and microseconds of a check of a chunk."""
    lines: Counter[str] = Counter()
    hidden: Counter[str] = Counter()
    chunks, seconds, shown = 0, 0.0, 0
    redaction.load_rules()
    for path, language in sources(folder):
        pieces = ChunkedText.of(path.read_text("utf-8", "replace")).chunks
        for each in (secret_lines, is_secret_line, redaction._hidden):
            each.cache_clear()
        for number, piece in enumerate(pieces):
            started = time.process_time()
            clean = redaction.chunk_without_secrets(pieces, number, language)
            seconds += time.process_time() - started
            lines[language] += (count := len(LINE.findall(piece)))
            if clean is not piece:
                hidden[language] += count - len(LINE.findall(clean))
                if shown < examples:
                    shown += 1
                    print(path, *redaction.hidden_lines(piece, language), file=sys.stderr)
        chunks += len(pieces)
    return {
        "lines": lines.total(),
        "hidden": hidden.total(),
        "hidden_share": hidden.total() / max(1, lines.total()),
        "by_language": {name: [hidden[name], lines[name]] for name in sorted(lines)},
        "chunk_us": 1e6 * seconds / max(1, chunks),
    }


def sources(folder: Path) -> Iterator[tuple[Path, str]]:
    """The source files below a folder, with their languages."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        language = language_of(path.name)
        if language == "plaintext" or not SKIPPED.isdisjoint(inside) or any(part.startswith(".") for part in inside):
            continue
        if path.is_file() and path.stat().st_size <= MAX_FILE_BYTES:
            yield path, language


def table(record: dict[str, Any]) -> Table:
    """Planted secrets that are shown, of those planted, by class and language."""
    ordinary = record["ordinary"]
    price = f"{ordinary['hidden_share']:.3%} of {ordinary['lines']:,} ordinary lines hidden"
    made = Table(
        "class",
        *(language[:6] for language in LANGUAGES),
        "shown",
        title=f"planted secrets that the model sees; {price}",
    )
    for kind, row in record["classes"].items():
        shown, planted = (sum(each[part] for each in row.values()) for part in (0, 1))
        made.add_row(kind, *(str(row[language][0]) for language in LANGUAGES), f"{shown} of {planted}")
    made.add_row("all", *[""] * len(LANGUAGES), f"{len(record['leaking'])} of {record['planted']}")
    return made


if __name__ == "__main__":
    sys.exit(main())
