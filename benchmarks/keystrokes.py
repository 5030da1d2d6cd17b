"""Measure milliseconds per keystroke: `python benchmarks/keystrokes.py [--quick] [--peer LLAMA_SERVER] [--json]`.

It types lines of held-out files into the language server over stdio, with pauses, corrected typos and jumps to other
places, and times every answer: in the server, before the engine, prefill and denoising. The server is the one that
`mercury-lsp` runs, with a stopwatch around its engine. With `--peer`, it types every file into the server and then into
llama.cpp's with the same GGUF file, asked as llama.vim asks it (`on_keys/llama_vim.py`), and measures nothing else.
Compare the ratios: machines differ and are shared.
"""

import argparse
import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mercury_engine.errors import MercuryError
from mercury_engine.loading import find_model
from mercury_engine.models.gguf.file import gguf_of
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import HeldOutFile, held_out_files
from on_all import options as options_of_all
from on_keys import editor, figures
from on_keys.llama_vim import llama_vim
from on_keys.script import Script, lines_to_type, moved, repeated, retyped
from rich.console import Group
from rich.table import Table

from mercury_lsp.errors import UsageError

LONG_FILE_LINES, SHORT_FILE_LINES = 20_000, 200
"""Lines of the two files whose latencies are compared."""

QUICK_SIZES = {"files": 2, "keys": 20, "peer_keys": 10, "pairs": 10}
FULL_SIZES = {"files": 8, "keys": 150, "peer_keys": 50, "pairs": 240}


def main() -> int:
    parser = options_of_all.parser("keystrokes", __doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute on a quiet machine")
    options_of_all.add_corpus(parser)
    parser.add_argument("--peer", type=Path, metavar="LLAMA_SERVER", help="compare with this server alone")
    options_of_all.add_threads(parser, 2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        sizes = QUICK_SIZES if options.quick else FULL_SIZES
        if options.peer is None:
            found = measured(options, sizes)
            suite.deliver(found, Group(*figures.tables(found)), options)
        else:
            found = beside_llama_vim(options, sizes["files"], sizes["peer_keys"])
            suite.deliver(found, table_of_sides(found), options)
    except MercuryError as error:
        parser.exit(1, f"{error}\n")
    return 0


def measured(options: argparse.Namespace, sizes: dict[str, int]) -> dict[str, Any]:
    """The record of a run."""
    scripts = sample_scripts(held_out_files(options.corpus), sizes["files"], sizes["keys"], options.seed)
    typed = through_the_server(options, scripts, sizes)
    typing = typed["typing"]
    headline = {
        "fill_p50_ms": typing["fill_ms"]["p50"],
        "fill_p95_ms": typing["fill_ms"]["p95"],
        "server_p95_ms": typing["server_ms"]["p95"],
        **{name: typed.pop(name) for name in ("long_file_ratio", "encoded_tokens_per_keystroke", "resident_mb")},
    }
    return headline | typed | circumstances(options, scripts)


def circumstances(options: argparse.Namespace, scripts: list[tuple[HeldOutFile, Script]]) -> dict[str, Any]:
    """What a record says of its run."""
    return {
        "threads": options.threads,
        "seed": options.seed,
        "quick": options.quick,
        "files": [document.name for document, _ in scripts],
        **options_of_all.circumstances(),
    }


def sample_scripts(
    found: list[HeldOutFile], files: int, keys: int, seed: int, left: int = 0
) -> list[tuple[HeldOutFile, Script]]:
    """Files and the keys to type in them; the same seed gives the same keys. `left`: last characters that stay."""
    rng = random.Random(f"files {seed}")
    spans = [(d, *lines_to_type(d.text, keys, seed)) for d in rng.sample(found, min(files, len(found)))]
    return [(document, retyped(document.text, start, end - left, seed)) for document, start, end in spans]


def through_the_server(
    options: argparse.Namespace, scripts: list[tuple[HeldOutFile, Script]], sizes: dict[str, int]
) -> dict[str, Any]:
    """Type into the server; returns the figures."""
    rows: list[editor.KeyTimes] = []
    fills: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with editor.server(root, root / "fills.jsonl", options.threads, options.model) as typist:
            for document, script in suite.progress(scripts, "typing"):
                uri = (root / document.name).as_uri()
                typist.open(uri, document.language, script.text, script.keys[0].start)
                before = len(typist.fills())
                rows += typist.play(uri, script, sizes["keys"])
                fills += typist.fills()[before:]
            hurried = typist.hurried
            resident = editor.resident_mb(typist.pid)
            pairs = in_long_and_short(typist, root, sizes["pairs"], options)
            pairs["resident_mb"] = editor.resident_mb(typist.pid)
    editor.match(rows, fills)
    return {
        "typing": figures.split(rows) | {"hurried": hurried, "tokens_read": figures.encoded(rows)},
        "long_and_short": pairs,
        "long_file_ratio": pairs.pop("ratio"),
        # All that was read counts: also for answers that nobody awaited, and ahead of time.
        "encoded_tokens_per_keystroke": sum(fill["tokens_read"] for fill in fills) / max(1, len(rows) + hurried),
        "resident_mb": resident,
    }


def in_long_and_short(typist: editor.Typist, root: Path, keys: int, options: argparse.Namespace) -> dict[str, Any]:
    """Type the same keys alternately in a long and a short file with equal text around the cursor.

    The rest of the long one is other files: copies of the typed lines would be drafts, and their passes longer.
    """
    found = held_out_files(options.corpus)
    document = max(found, key=lambda d: d.text.count("\n"))
    short = "".join(document.text.splitlines(keepends=True)[:SHORT_FILE_LINES])
    script = retyped(short, *lines_to_type(short, keys, options.seed), options.seed)
    others = "".join(d.text for d in found if d.language == document.language and d is not document)
    rest = repeated(others or short, LONG_FILE_LINES // 2)
    long = moved(script, rest, rest)
    rows: dict[str, list[editor.KeyTimes]] = {}
    playing = {}
    for name, each in (("long", long), ("short", script)):
        uri = (root / f"{name}{document.path.suffix}").as_uri()
        typist.open(uri, document.language, each.text, each.keys[0].start)
        playing[name], rows[name] = typist.play(uri, each, keys, paced=False), []
    for pair in zip(playing["long"], playing["short"], strict=True):  # in turn: the machine is the same for both
        for name, row in zip(playing, pair, strict=True):
            rows[name].append(row)
    fills = typist.fills()
    for each in rows.values():
        editor.match(each, fills)
    slow, fast = figures.same_work(rows["long"], rows["short"])
    one, other = figures.percentile(slow, 50), figures.percentile(fast, 50)
    return {
        "long_lines": long.text.count("\n"),
        "short_lines": script.text.count("\n"),
        "long_ms": figures.spread(slow),
        "short_ms": figures.spread(fast),
        "ratio": one / other if one and other else None,
    }


def beside_llama_vim(options: argparse.Namespace, files: int, keys: int) -> dict[str, Any]:
    """The record of the same keys in this server and in llama.cpp's: each file here, then there.

    The break of the last line stays: the plugin asks for nothing where a longer text follows on the line.
    """
    if (gguf := gguf_of(find_model(options.model))) is None:
        raise UsageError("--peer needs a model in a GGUF file; name one with --model")
    scripts = sample_scripts(held_out_files(options.corpus), files, keys, options.seed, left=1)
    with (
        tempfile.TemporaryDirectory() as folder,
        llama_vim(options.peer, gguf, options.threads) as plugin,
        editor.server(Path(folder), Path(folder, "fills.jsonl"), options.threads, options.model) as typist,
    ):
        sides: dict[str, Side] = {"mercury": Side(typist), "llama_cpp": Side(plugin)}
        for document, script in suite.progress(scripts, "typing"):
            for side in sides.values():
                side.type(Path(folder, document.name).as_uri(), document.language, script, keys)
        record = {name: side.record() for name, side in sides.items()}
    mine, other = (each["asked_ms"]["p50"] for each in record.values())
    return {"times_as_long": other / mine, "model": gguf.name} | record | circumstances(options, scripts)


@dataclass(slots=True)
class Side:
    """One of two servers, and what it did for the keys."""

    typist: editor.Typist
    rows: list[editor.KeyTimes] = field(default_factory=list)
    tokens_read: int = 0
    processor_seconds: float = 0.0

    def type(self, uri: str, language: str, script: Script, keys: int) -> None:
        self.typist.open(uri, language, script.text, script.keys[0].start)
        known, before = len(self.typist.fills()), editor.processor_seconds(self.typist.pid)
        rows = [*self.typist.play(uri, script, keys)]
        self.processor_seconds += editor.processor_seconds(self.typist.pid) - before
        fills = self.typist.fills()[known:]
        editor.match(rows, fills)
        self.rows += rows
        self.tokens_read += sum(fill["tokens_read"] for fill in fills)

    def record(self) -> dict[str, Any]:
        """The times are without rewrites of the lines around the cursor, which the next key stops."""
        took = [(row.milliseconds - row.parts()["rewrite"], row.fill is not None) for row in self.rows]
        return {
            "key_ms": figures.spread([milliseconds for milliseconds, _ in took]),
            "asked_ms": figures.spread([milliseconds for milliseconds, is_asked in took if is_asked]),
            "tokens_read_per_key": self.tokens_read / len(self.rows),
            "processor_ms_per_key": 1e3 * self.processor_seconds / len(self.rows),
        }


def table_of_sides(found: dict[str, Any]) -> Table:
    """The record for people."""
    columns = ("server", "asked, p50 ms", "p95 ms", "all keys, p50 ms", "p95 ms", "tokens read", "processor ms")
    made = Table(*columns, title=f"the same keys, {found['model']}: {found['times_as_long']:.1f} times as long")
    for name in ("mercury", "llama_cpp"):
        side = found[name]
        times = (side[of][p] for of in ("asked_ms", "key_ms") for p in ("p50", "p95"))
        per_key = (side["tokens_read_per_key"], side["processor_ms_per_key"])
        made.add_row(name, *(f"{value:,.1f}" for value in (*times, *per_key)))
    return made


if __name__ == "__main__":
    sys.exit(main())
