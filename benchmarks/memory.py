"""Measure resident memory while typing: `python benchmarks/memory.py [--quick] [--json] [--out FILE]`.

It types a thousand keys into the language server over stdio, spread over twenty held-out files that are open from the
start, and reads the server's memory after every answer, to see whether it fits the budget and whether it grows. Pages
of files, mostly libraries' code, are counted separately from the process's own. Processor time allows a comparison of
two versions.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from mercury_engine.errors import MercuryError
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import held_out_files
from on_all import options as options_of_all
from on_keys import editor
from on_keys.script import Script, lines_to_type, retyped
from rich.table import Table

OPEN_FILES = 20

EARLY_KEYS, LEVEL_KEYS = 100, 20
"""Keys: a level is the median over LEVEL_KEYS keys, those before key EARLY_KEYS and the last ones."""

REST_SECONDS = 4
"""Seconds without a key after which the engine has certainly released its idle memory."""


def main() -> int:
    parser = options_of_all.parser("memory", __doc__)
    parser.add_argument("--quick", action="store_true", help="200 keys")
    options_of_all.add_corpus(parser)
    options_of_all.add_threads(parser, 2)
    options = parser.parse_args()
    try:
        found = measured(options, 200 if options.quick else 1000)
        suite.deliver(found, table(found), options)
    except MercuryError as error:
        parser.exit(1, f"{error}\n")
    return 0


def measured(options: argparse.Namespace, keys: int) -> dict[str, Any]:
    """The record of a run."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with editor.server(root, root / "fills.jsonl", options.threads, options.model) as typist:
            loaded = editor.resident_mb(typist.pid)
            scripts = opened(typist, root, options.corpus, keys // OPEN_FILES)
            open_mb, spent = editor.resident_mb(typist.pid), editor.processor_seconds(typist.pid)
            after_key = list(typed(typist, scripts, keys // OPEN_FILES))
            spent = editor.processor_seconds(typist.pid) - spent
            typing = parts_mb(typist.pid)
            time.sleep(REST_SECONDS)
            resting = editor.resident_mb(typist.pid)
            fills = len(typist.fills())
    early, late = (statistics.median(levels[-LEVEL_KEYS:]) for levels in (after_key[:EARLY_KEYS], after_key))
    return {
        "resident_mb": {
            "loaded": loaded,
            "files_open": open_mb,
            f"after_{EARLY_KEYS}": early,
            f"after_{keys}": late,
            "highest": max(after_key),
            "resting": resting,
        },
        "growth": late / early - 1,
        "while_typing_mb": typing,
        "keys": keys,
        "fills": fills,
        "processor_seconds": spent,
        "threads": options.threads,
        **options_of_all.circumstances(),
    }


def opened(typist: editor.Typist, root: Path, corpus: Path, keys: int, files: int = OPEN_FILES) -> dict[str, Script]:
    """Open the files and request once in each; returns the scripts by URI."""
    found = held_out_files(corpus)
    chosen = found[:: max(1, len(found) // OPEN_FILES)][:OPEN_FILES]
    scripts = {}
    for number in range(files):
        document = chosen[number % len(chosen)]
        script = retyped(document.text, *lines_to_type(document.text, 2 * keys, number), number)
        uri = (root / f"{number}_{document.name}").as_uri()
        typist.open(uri, document.language, script.text, script.keys[0].start)
        scripts[uri] = script
    return scripts


def typed(typist: editor.Typist, scripts: dict[str, Script], keys: int) -> Iterator[float]:
    """Resident memory after each answered key, `keys` per file."""
    for uri, script in suite.progress(list(scripts.items()), "typing"):
        for _ in islice(typist.play(uri, script, len(script.keys), paced=False), keys):
            yield editor.resident_mb(typist.pid) or 0.0


def parts_mb(pid: int) -> dict[str, float]:
    """The parts of a process's resident memory in MiB: its own, and pages of files."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    sizes = {line.split()[0]: int(line.split()[1]) / 1024 for line in lines}
    return {"anonymous": sizes["Anonymous:"], "of_files": sizes["Rss:"] - sizes["Anonymous:"]}


def table(found: dict[str, Any]) -> Table:
    """The record as a table."""
    made = Table("MiB", "value")
    for name, value in (found["resident_mb"] | found["while_typing_mb"]).items():
        made.add_row(name, f"{value:.0f}")
    growth, seconds = found["growth"], found["processor_seconds"]
    made.caption = f"growth {growth:.1%}, {found['fills']} fills, {seconds:.0f} s of the processor"
    return made


if __name__ == "__main__":
    sys.exit(main())
