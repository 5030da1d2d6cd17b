"""Plant secrets and look for them in what the model sees: `python benchmarks/planted_secrets.py [--code DIR] [--json]`.

Each made format is planted in each of 13 languages in a document of ordinary lines, and each file of
`on_secrets/*_formats.json` is opened in each language id that an editor gives it. Then every text is collected that a
prompt, a next edit or the n-gram lookup gets of it, with cursors in and around the secret, and searched for the secret.
Nothing else is cached: the KV cache holds what prompts hold, statistics and logs hold no text.

The other half is the price: which share of the characters of ordinary code is hidden. It is measured by package, and
apart for the quarter of the packages that no rule was tuned on.
"""

import sys
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mercury_lab.evaluation import suite
from mercury_lab.intervals import wilson
from on_all import options as options_of_all
from on_secrets import lists, ordinary
from on_secrets.corpus import LANGUAGES, Planted, corpus, formats
from on_secrets.paths import WAYS, leaks
from rich.table import Table

CODE = (
    options_of_all.CORPUS,
    Path(sysconfig.get_path("stdlib")),
    Path(sysconfig.get_path("purelib")),
    options_of_all.BENCHMARKS.parent / "editors" / "vscode" / "node_modules",
)
"""Folders of packages: held-out repositories, the standard library, installed Python and npm packages."""


def main() -> int:
    parser = options_of_all.parser("planted_secrets", __doc__)
    parser.add_argument("--code", type=Path, action="append", help="a folder of packages of ordinary code (repeatable)")
    parser.add_argument(
        "--part", choices=("tuned", "held back"), action="append", help="packages to read (default: all)"
    )
    parser.add_argument("--examples", type=int, default=0, help="hidden lines of a part of the code, to print")
    parser.add_argument(
        "--list", type=Path, metavar="FILE", help="only a JSON list of name, language, path, text, secret"
    )
    parser.add_argument("--skip", action="append", default=[], metavar="LIST", help="a list of formats not to read")
    options = parser.parse_args()
    if options.list is not None:
        options.out = None  # the record is of the lists in this repository
        suite.deliver(record := file_record(options.list), file_table(record), options)
        return 0
    roots = [folder.absolute() for folder in options.code or CODE if folder.exists()]
    record = {
        **planted_record(list(corpus())),
        "lists": {name: list_record(name) for name in list_names() if name not in options.skip},
        "ordinary": {
            part: ordinary_record(roots, part, options.examples) for part in options.part or ("tuned", "held back")
        },
        **options_of_all.circumstances(),
    }
    suite.deliver(record, table(record), options)
    return 0


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


def list_names() -> list[str]:
    return sorted({each.list for each in lists.formats()})


def list_record(name: str) -> dict[str, Any]:
    """The formats of a list that are shown: a format counts if it leaks under any of its language ids."""
    leaking: dict[str, list[str]] = {}
    files = shown = count = 0
    for each in lists.formats(name):
        found = [language for language in each.languages if any(leaks(each.planted(language)).values())]
        count, files, shown = count + 1, files + len(each.languages), shown + len(found)
        if found:
            leaking[f"{count} {each.path}: {each.about}"] = found
    return {
        "formats": count,
        "leaking": leaking,
        "leak_rate": len(leaking) / max(1, count),
        "interval": wilson(len(leaking), count),
        "files": files,
        "leaking_files": shown,
    }


def file_record(file: Path) -> dict[str, Any]:
    """How many secrets of a list in a file are shown, and which."""
    planted = list(lists.of_file(file))
    ways = {each.name: [way for way, count in leaks(each).items() if count] for each in planted}
    leaking = {name: found for name, found in ways.items() if found}
    rate = len(leaking) / max(1, len(planted))
    return {
        "secrets": len(planted),
        "leaking": leaking,
        "leak_rate": rate,
        "interval": wilson(len(leaking), len(planted)),
    }


def file_table(record: dict[str, Any]) -> Table:
    made = Table(
        "secret", "shown by", title=f"{len(record['leaking'])} of {record['secrets']} ({record['leak_rate']:.1%})"
    )
    for name, ways in record["leaking"].items():
        made.add_row(name, ", ".join(ways))
    return made


def ordinary_record(roots: Sequence[Path], part: str, examples: int) -> dict[str, Any]:
    """The share of characters of ordinary code that are hidden, over a part of the packages."""
    found = [
        ordinary.measured(name, files)
        for name, files in ordinary.packages(roots)
        if ordinary.is_held_back(name) == (part == "held back")
    ]
    lines = [line for package in found for line in package.lines]
    for path, line in lines[:examples]:
        print(path, line.strip(), file=sys.stderr)
    by_language: Counter[str] = sum((package.languages for package in found), Counter())
    return {
        "packages": len(found),
        "chars": sum(by_language.values()),
        "hidden_lines": len(lines),
        "hidden_share": ordinary.share(found),
        "interval": ordinary.interval(found, ordinary.share),
        "by_language": dict(by_language.most_common()),
        "most": {each.name: each.hidden for each in sorted(found, key=lambda each: -each.hidden)[:12] if each.hidden},
    }


def table(record: dict[str, Any]) -> Table:
    """Formats and planted secrets that are shown, and code that is hidden."""
    made = Table("what", "shown or hidden", "share", "95 %")
    for kind, row in record["classes"].items():
        shown, planted = (sum(each[part] for each in row.values()) for part in (0, 1))
        if shown:
            made.add_row(kind, f"{shown} of {planted}")
    shown, planted = len(record["leaking"]), record["planted"]
    made.add_row("made in 13 languages", f"{shown} of {planted}", f"{shown / planted:.2%}")
    for name, each in record["lists"].items():
        low, high = each["interval"]
        made.add_row(
            name, f"{len(each['leaking'])} of {each['formats']}", f"{each['leak_rate']:.1%}", f"{low:.1%} to {high:.1%}"
        )
    for part, each in record["ordinary"].items():
        low, high = each["interval"]
        chars = f"{each['hidden_lines']} lines of {each['chars']:,} characters"
        made.add_row(f"ordinary code, {part}", chars, f"{each['hidden_share']:.4%}", f"{low:.4%} to {high:.4%}")
    return made


if __name__ == "__main__":
    sys.exit(main())
