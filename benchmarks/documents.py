"""Measure several documents on one engine: `python benchmarks/documents.py [--quick] [--json] [--out FILE]`.

It sends the server's requests at the ends of lines of held-out files, line by line. First one document after the other;
then the documents in rotation, so that the caches must hold them all; then all at once, so that they share forward
passes. `by_turns` is the second time divided by the first, `at_once` the second divided by the third.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mercury_engine.api import Answer, Control, Fill, FillRequest
from mercury_engine.errors import MercuryError
from mercury_engine.scheduler import Scheduler
from mercury_engine.utility import Utility
from mercury_lab.engine import Engine
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import held_out_files
from on_all import options as options_of_all
from rich.table import Table

from mercury_lsp.context.context import ContextBuilder
from mercury_lsp.documents.document import Document

FIRST_LINE = 20
"""Line at which the cursor starts, so that there is text before it."""


def main() -> int:
    parser = options_of_all.parser("documents", __doc__)
    parser.add_argument("--quick", action="store_true", help="four lines a document")
    options_of_all.add_corpus(parser)
    options_of_all.add_threads(parser, 2)
    parser.add_argument("--documents", type=int, nargs="+", default=[1, 2, 4, 8], help="how many (default 1 2 4 8)")
    options = parser.parse_args()
    try:
        found = measure(options, 4 if options.quick else 24)
        suite.deliver(found, table(found), options)
    except MercuryError as error:
        parser.exit(1, f"{error}\n")
    return 0


def measure(options: argparse.Namespace, lines: int) -> dict[str, Any]:
    """The record of a run."""
    engine = Engine.load(options.model, device="cpu", threads=options.threads)
    asked = requests(options.corpus, max(options.documents), lines + 1, engine.utility)
    return {
        "by_number": {str(number): compared(engine, asked[:number]) for number in options.documents},
        "lines": lines,
        "threads": options.threads,
        **options_of_all.circumstances(),
    }


def requests(corpus: Path, number: int, lines: int, utility: Utility) -> list[list[FillRequest]]:
    """For each of `number` documents, a request at each of `lines` lines."""
    long_enough = [each for each in held_out_files(corpus) if each.text.count("\n") > FIRST_LINE + 4 * lines]
    found = []
    for each in long_enough[:: max(1, len(long_enough) // number)][:number]:
        snapshot = Document(f"file:///{each.name}", each.language, 1, each.text).snapshot()
        builder = ContextBuilder()
        ends = [
            snapshot.source.line_bounds(snapshot.offset_at(line, 0))[1]
            for line in range(FIRST_LINE, FIRST_LINE + lines)
        ]
        contexts = [builder.build(snapshot, end, each.name) for end in ends]
        found.append([replace(context.request(), utility=utility, multiline=True) for context in contexts])
    return found


@dataclass(frozen=True, slots=True)
class RoundTime:
    """The time of one line in every document."""

    seconds: float
    tokens_read: int


def compared(engine: Engine, asked: Sequence[Sequence[FillRequest]]) -> dict[str, float]:
    """Milliseconds and prefilled tokens per fill in the three ways, and their ratios."""
    alone = [taken for each in asked for taken in in_turn(engine, [each])]
    turns = in_turn(engine, asked)
    together = in_turn(engine, asked, at_once=True)
    fills = len(alone)
    ms = {
        name: 1e3 * sum(each.seconds for each in of) / fills
        for name, of in (("alone", alone), ("by_turns", turns), ("at_once", together))
    }
    return {
        **{f"{name}_ms": each for name, each in ms.items()},
        "read_alone": sum(each.tokens_read for each in alone) / fills,
        "read_by_turns": sum(each.tokens_read for each in turns) / fills,
        "by_turns": ms["by_turns"] / ms["alone"],
        "at_once": ms["by_turns"] / ms["at_once"],
    }


def in_turn(engine: Engine, asked: Sequence[Sequence[FillRequest]], at_once: bool = False) -> list[RoundTime]:
    """Fill line by line in all documents; the first line only warms the caches."""
    engine.cache.clear()
    taken = []
    for line in zip(*asked, strict=True):
        started = time.perf_counter()
        fills = filled(engine, line) if at_once else [engine.fill(request) for request in line]
        taken.append(RoundTime(time.perf_counter() - started, sum(fill.tokens_read for fill in fills)))
    return taken[1:]


def filled(engine: Engine, asked: Sequence[FillRequest]) -> list[Fill]:
    """Fill all requests at once."""
    found = list[Fill]()

    def done(outcome: Answer | Exception) -> None:
        if isinstance(outcome, Exception):
            raise outcome
        assert isinstance(outcome, Fill)
        found.append(outcome)

    waiting = [[(request, Control(), done) for request in asked]]
    Scheduler(engine.reader, engine.steps).answer_all(lambda: waiting.pop() if waiting else ())
    return found


def table(record: dict[str, Any]) -> Table:
    """The record as a table."""
    made = Table(
        "documents", "alone, ms a fill", "in rotation", "at once", "tokens read in rotation", "in rotation / at once"
    )
    for number, row in record["by_number"].items():
        numbers = (row["alone_ms"], row["by_turns_ms"], row["at_once_ms"], row["read_by_turns"])
        made.add_row(number, *(f"{each:.1f}" for each in numbers), f"{row['at_once']:.2f}")
    return made


if __name__ == "__main__":
    sys.exit(main())
