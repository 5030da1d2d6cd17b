"""Measure milliseconds per keystroke: `python benchmarks/keystrokes.py [--quick] [--json] [--out FILE]`.

It types lines of held-out files into the language server over stdio, with pauses, corrected typos and jumps to other
places, and times every answer: in the server, before the engine, prefill and denoising. The server is the one that
`mercury-lsp` runs, with a stopwatch around its engine. Then it times fills of equal length in this process, by the
engine and by other ways to use the same weights (`on_keys/peers.py`). All run one after another with the same number of
threads. Compare the ratios: machines differ and are shared.
"""

import argparse
import random
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mercury_engine.api import FillRequest, Source
from mercury_engine.errors import MercuryError
from mercury_lab.engine import Engine
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import HeldOutFile, held_out_files
from on_all import options as options_of_all
from on_keys import editor, figures, peers
from on_keys.script import Script, lines_to_type, moved, repeated, retyped

from mercury_lsp.context import lookup_text
from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document as OpenDocument

HERE = Path(__file__).resolve().parent
GGUF = HERE.parent / "runs" / "downloads" / "SmolLM2-135M-Instruct.Q4_1.gguf"

MEAN_NAMES = ("steps", "tokens", "tokens_read")

LONG_FILE_LINES, SHORT_FILE_LINES = 20_000, 200
"""Lines of the two files whose latencies are compared."""

# After `seconds`, a way to fill gets no further requests: on a busy machine one fill by llama.cpp, whose threads spin
# while they wait for each other, took two minutes.
QUICK_SIZES = {"files": 2, "keys": 20, "pairs": 10, "fills": 4, "recomputed": 1, "seconds": 8}
FULL_SIZES = {"files": 8, "keys": 150, "pairs": 240, "fills": 60, "recomputed": 10, "seconds": 240}


def main() -> int:
    parser = options_of_all.parser("keystrokes", __doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute on a quiet machine")
    options_of_all.add_corpus(parser)
    parser.add_argument("--gguf", type=Path, default=GGUF, help="for llama.cpp: the same base model")
    options_of_all.add_threads(parser, 2)
    parser.add_argument("--tokens", type=int, default=24, help="of the fills that are compared (default 24)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        found = measured(options, QUICK_SIZES if options.quick else FULL_SIZES)
        suite.deliver(found, StackedTables(figures.tables(found)), options)
    except MercuryError as error:
        parser.exit(1, f"{error}\n")
    return 0


class StackedTables:
    """Several tables, one below the other."""

    def __init__(self, tables: Sequence[Any]):
        self._tables = tables

    def __rich_console__(self, *_: Any) -> Any:
        yield from self._tables


def measured(options: argparse.Namespace, sizes: dict[str, int]) -> dict[str, Any]:
    """The record of a run."""
    scripts = sample_scripts(held_out_files(options.corpus), sizes["files"], sizes["keys"], options.seed)
    typed = through_the_server(options, scripts, sizes)
    ways, against = compared(options, scripts, sizes)
    typing = typed["typing"]
    headline = {
        "fill_p50_ms": typing["fill_ms"]["p50"],
        "fill_p95_ms": typing["fill_ms"]["p95"],
        "server_p95_ms": typing["server_ms"]["p95"],
        **against,
        **{name: typed.pop(name) for name in ("long_file_ratio", "encoded_tokens_per_keystroke", "resident_mb")},
    }
    circumstances = {
        "tokens": options.tokens,
        "threads": options.threads,
        "seed": options.seed,
        "quick": options.quick,
        "files": [document.name for document, _ in scripts],
        **options_of_all.circumstances(),
    }
    return {name: headline[name] for name in figures.HEADLINE} | typed | {"ways": ways} | circumstances


def sample_scripts(found: list[HeldOutFile], files: int, keys: int, seed: int) -> list[tuple[HeldOutFile, Script]]:
    """Files and the keys to type in them; the same seed gives the same keys."""
    rng = random.Random(f"files {seed}")
    chosen = rng.sample(found, min(files, len(found)))
    return [(d, retyped(d.text, *lines_to_type(d.text, keys, seed), seed)) for d in chosen]


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


def compared(
    options: argparse.Namespace, scripts: list[tuple[HeldOutFile, Script]], sizes: dict[str, int]
) -> tuple[dict[str, Any], dict[str, float | None]]:
    """Every way at the same keystrokes: its times, and their ratios to ours."""
    engine = Engine.load(options.model, device="cpu", threads=options.threads)
    ways = {"ours": peers.ours(engine), "left_to_right": peers.left_to_right(engine)}
    ways |= {"recompute": peers.recompute(engine), **llama(options)}
    took: dict[str, dict[tuple[int, int], peers.Timed]] = {name: {} for name in (*ways, "llama_cpp")}
    spent = dict.fromkeys(took, 0.0)
    each, recomputed = (max(1, sizes[name] // len(scripts)) for name in ("fills", "recomputed"))
    for place, (document, script) in enumerate(suite.progress(scripts, "filling")):
        for number, request in enumerate(requests(document, script, each + 1, options.tokens)):
            for name, way in ways.items():
                if name == "recompute" and (not 1 <= number <= recomputed or len(took[name]) >= sizes["recomputed"]):
                    continue  # slow, and with nothing to keep warm
                if spent[name] < sizes["seconds"]:
                    took[name][place, number] = timed = way(request)
                    spent[name] += timed.seconds if number else 0.0
    report_stopped(spent, sizes["seconds"])
    for times in took.values():
        for place in range(len(scripts)):
            times.pop((place, 0), None)  # it filled the caches
    return {name: row(times) for name, times in took.items()}, {
        f"vs_{name}": over_ours(took, name) for name in took if name != "ours"
    }


def report_stopped(spent: dict[str, float], limit: float) -> None:
    """Report on stderr the ways that were stopped early."""
    for name, seconds in spent.items():
        if seconds >= limit:
            print(f"{name} was stopped after {seconds:.0f} s; is the machine busy?", file=sys.stderr)


def requests(document: HeldOutFile, script: Script, count: int, tokens: int) -> list[FillRequest]:
    """The requests after the first typing keys of a script."""
    builder, found = ContextBuilder(), []
    for number, (key, text) in enumerate(list(script.states())[: 4 * count]):
        if key.kind == "type" and len(found) < count:
            snapshot = OpenDocument(document.path.as_uri(), document.language, number, text).snapshot()
            context = lookup_text.with_rest_of_document(builder.build(snapshot, key.cursor, document.name), snapshot)
            found.append(peers.fixed(context.request(), tokens))
    return found


def llama(options: argparse.Namespace) -> dict[str, peers.Way]:
    """llama.cpp if it is available; otherwise stderr says why not."""
    try:
        return {"llama_cpp": peers.llama_cpp(options.gguf, options.threads)}
    except ImportError:
        print("llama.cpp is left out: pip install xllamacpp", file=sys.stderr)
    except FileNotFoundError as error:
        print(f"llama.cpp is left out: {error}", file=sys.stderr)
    return {}


def row(timed: dict[Any, peers.Timed]) -> dict[str, Any] | None:
    """The times of one way; None if it did not run."""
    if not timed:
        return None
    means: dict[str, Any] = {name: statistics.fmean(getattr(t, name) for t in timed.values()) for name in MEAN_NAMES}
    sources = sum((Counter(t.accepted_from) for t in timed.values()), Counter[Source]())
    means |= {"accepted_from": {name: count / len(timed) for name, count in sources.items()}} if sources else {}
    return {"ms": figures.spread([1e3 * t.seconds for t in timed.values()])} | means


def over_ours(took: dict[str, dict[Any, peers.Timed]], name: str) -> float | None:
    """The ratio of a way's time to ours, over the requests that both filled."""
    shared = list(took[name])
    return figures.ratio([took[name][at].seconds for at in shared], [took["ours"][at].seconds for at in shared])


if __name__ == "__main__":
    sys.exit(main())
