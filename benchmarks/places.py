"""Measure where the next edit is: `python benchmarks/places.py --commits DIR --head FILE [--json] [--out FILE]`.

DIR is what `python -m mercury_lab.training commits` wrote; its split "test" is replayed: some steps of a commit
are made, and the head (`training places`) says where the next one is, compared with the lines around the last change. A
place is right if it is within three lines of a step that is left; in quiet moments none is. `first` figures are shares
of moments with a step left.
"""

import sys
from collections.abc import Sequence
from itertools import groupby, islice
from pathlib import Path
from time import process_time
from typing import Any

from mercury_engine.places.candidates import Candidate, Kind
from mercury_engine.places.head import LikelyPlace, PlaceHead, distinct
from mercury_lab.evaluation import suite
from mercury_lab.training.commits.build import read_split
from mercury_lab.training.ranking.cases import Case, all_cases
from mercury_lab.training.ranking.figures import candidate_figures, place_figures
from on_all import options as options_of_all
from on_edits.ranking_time import ranking_ms
from rich.table import Table

from mercury_lsp.completion.next_edits.places import HEAD_FILE


def main() -> int:
    parser = options_of_all.parser("places", __doc__)
    parser.add_argument("--commits", type=Path, required=True, help="folder that `training commits` wrote")
    parser.add_argument("--head", type=Path, default=HEAD_FILE, help="file that `training places` wrote")
    parser.add_argument("--time", action="store_true", help="only time the server's ranking in a long document")
    parser.add_argument("--split", default="test")
    parser.add_argument("--workers", type=int, default=1, help="processes that make the cases")
    options_of_all.add_sample(parser, 50, "edits of each repository")
    options = parser.parse_args()
    head = PlaceHead.load(options.head)
    by_repository = groupby(read_split(options.commits, options.split), key=lambda edit: edit.repository)
    edits = [edit for _, own in by_repository for edit in islice(own, options.limit)]
    if options.time:
        print(ranking_ms((file.text for edit in edits for file in edit.files), options.seed))
        return 0
    found = all_cases(edits, options.seed, options.workers)
    ranked = {
        "head": [distinct(case.candidates, head.probabilities(case.rows)[:-1], 3) for case in found],
        "line_below": [line_below(case) for case in found],
    }
    record = {
        "candidates": candidate_figures(found),
        "figures": {name: place_figures(found, places) for name, places in ranked.items()},
        "by_language": by_language(found, ranked["head"]),
        "processor_ms": processor_ms(found, head),
        "server_ms": ranking_ms((file.text for edit in edits for file in edit.files), options.seed),
        "edits": len(edits),
        "repositories": sorted({edit.repository for edit in edits}),
        "seed": options.seed,
        **options_of_all.circumstances(),
    }
    suite.deliver(record, table(record), options)
    return 0


def line_below(case: Case) -> list[LikelyPlace]:
    """The simplest guesses: just below the last change, just above it, and further below."""
    last = case.moment.situation.changes[-1]
    lines = (last.end + 1, last.start - 2, last.end + 8)
    most = len(case.moment.situation.documents[last.document].lines)
    return [LikelyPlace(Candidate(last.document, line, Kind.NEAR), 1.0) for line in lines if 0 <= line < most]


def by_language(found: Sequence[Case], ranked: Sequence[list[LikelyPlace]]) -> dict[str, Any]:
    """The head's first places by language."""
    languages = sorted({case.moment.edit.language for case in found})
    rows = {}
    for language in languages:
        own = [
            (case, places) for case, places in zip(found, ranked, strict=True) if case.moment.edit.language == language
        ]
        figures = place_figures([case for case, _ in own], [places for _, places in own])
        rows[language] = {"moments": len(own), **{name: figures[name] for name in ("first_is_left", "first_is_next")}}
    return rows


def processor_ms(found: Sequence[Case], head: PlaceHead) -> dict[str, float]:
    """Processor time of one ranking in milliseconds, candidates and features included, of documents seen before."""
    times = []
    for case in found[:: max(1, len(found) // 200)]:
        situation = case.moment.situation
        started = process_time()
        head.places(situation)
        times.append(1000 * (process_time() - started))
    times.sort()
    return {"p50": round(times[len(times) // 2], 1), "p95": round(times[int(len(times) * 0.95)], 1)}


def table(record: dict[str, Any]) -> Table:
    shown = Table("way", "first is left", "first three", "first is next", "gate", "precision", "recall", "quiet")
    for way, figures in record["figures"].items():
        for gate, row in figures["by_gate"].items():
            if way.startswith("head") or gate == "0.0":
                cells = [figures["first_is_left"], figures["first_three_have_one_left"], figures["first_is_next"]]
                cells = [f"{cell[0]:.0%}" for cell in cells]
                shown.add_row(
                    way,
                    *cells,
                    gate,
                    *(f"{row[n][0]:.0%}" if row[n] else "-" for n in ("precision", "recall", "quiet")),
                )
    return shown


if __name__ == "__main__":
    sys.exit(main())
