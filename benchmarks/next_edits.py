"""Measure next edits: `python benchmarks/next_edits.py [--corpus DIR] [--limit N] [--json] [--out FILE]`.

It makes a change in a held-out file as a user would (`on_edits/cases.py`); the server's rules and the model then say
where the change should be repeated next. Precision is the share of offers that are right; recall is the share of cases
with a site left in which a right one is offered. Both are by gate, the least probability of an offer, from 0 (the rules
alone). `unasked` and `by_key` are the server's ways; `change_not_shown` is like `unasked`, but the model does not see
the change as a block of recent edits.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from lsprotocol import types
from mercury_engine.engine import Engine
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import HeldOutFile as File
from mercury_lab.evaluation.gaps import held_out_files
from rich.table import Table

from mercury_lsp.completion.next_edits.edit_sites import EditSite
from mercury_lsp.completion.next_edits.judging import change_block, probability_of_new, scoring_request
from mercury_lsp.completion.next_edits.next_edits import SITES_JUDGED_UNASKED
from mercury_lsp.completion.next_edits.repeatable_edits import RepeatableEdits
from mercury_lsp.completion.next_edits.replacement import Replacement
from mercury_lsp.documents.document import Document, Snapshot
from mercury_lsp.documents.languages import LANGUAGES

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from on_all import options as options_of_all  # noqa: E402
from on_edits.cases import CASE_KINDS, Case, cases  # noqa: E402
from on_edits.source import Source  # noqa: E402

FILE_CHARS = range(800, 60_000)
"""Range of file sizes, in characters."""

MAX_FILES_PER_LANGUAGE = 60
"""Files per language, so that no language dominates."""

GATES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99)

WAYS = ("unasked", "by_key", "change_not_shown")


@dataclass(frozen=True, slots=True)
class Judged:
    """A site that the rules found, whether it is right, and the probability of the new text there."""

    is_right: bool
    is_for_key: bool
    """Whether it is offered on request only."""
    probability_of_new: float
    change_not_shown: float
    seconds: float
    """Time that the engine took to judge it, with the earlier sites' prefill in its caches."""


def main() -> int:
    parser = options_of_all.parser("next_edits", __doc__)
    options_of_all.add_corpus(parser, "repositories")
    options_of_all.add_sample(parser, 40, "cases of each kind")
    options_of_all.add_threads(parser, 1)
    options = parser.parse_args()
    rng = random.Random(f"next edits {options.seed}")
    drawn = cases(list(sources(held_out_files(options.corpus), rng)), options.limit, rng)
    engine = Engine.load(options.model, device="cpu", threads=options.threads)
    rows = [(case, judged(engine, case)) for case in suite.progress(drawn, "judging")]
    record = {
        "figures": {way: {kind: by_gate(rows, way, kind) for kind in ("all", *CASE_KINDS)} for way in WAYS},
        "median_ms": round(1000 * median(each.seconds for _, found in rows for each in found), 1),
        "places_judged": SITES_JUDGED_UNASKED,
        "model": engine.name,
        "cases": {kind: sum(case.kind == kind for case, _ in rows) for kind in CASE_KINDS},
        "seed": options.seed,
        "corpus": options.corpus.name,
        **options_of_all.circumstances(),
    }
    suite.deliver(record, table(record), options, options_of_all.without_plots)
    return 0


def sources(files: Sequence[File], rng: random.Random) -> Iterator[Source]:
    """Files of medium size, of every language with a grammar."""
    by_language: dict[str, list[File]] = {}
    for file in files:
        if len(file.text) in FILE_CHARS and file.language in LANGUAGES:
            by_language.setdefault(file.language, []).append(file)
    for chosen in by_language.values():
        for file in rng.sample(chosen, min(MAX_FILES_PER_LANGUAGE, len(chosen))):
            yield Source(file.name, file.language, file.text)


def judged(engine: Engine, case: Case) -> list[Judged]:
    """The sites that the rules find after the user's changes, in order, judged by the model."""
    document, repeatable = Document("file:///a", case.language, 1, case.text), RepeatableEdits()
    found: Replacement | None = None
    for swap in case.made:
        snapshot = document.parsed()
        span = (types.Position(*snapshot.position_at(at)) for at in (swap.start, swap.start + len(swap.old)))
        change = types.TextDocumentContentChangePartial(types.Range(*span), swap.new)
        repeatable.record(document.apply([change], 1) or [])
        found = repeatable.replacement(document.parsed())
    if found is None:
        return []
    snapshot = document.parsed()
    sites = repeatable.sites(found, snapshot, invoked=True)[:SITES_JUDGED_UNASKED]
    unasked = repeatable.sites(found, snapshot, invoked=False)
    return [each for site in sites if (each := _judged(engine, case, found, site, snapshot, site not in unasked))]


def _judged(
    engine: Engine, case: Case, change: Replacement, site: EditSite, snapshot: Snapshot, is_for_key: bool
) -> Judged | None:
    if (request := scoring_request(site, change_block(change, snapshot), snapshot, case.name)) is None:
        return None
    started, texts = perf_counter(), (site.old, site.new)
    with_change = probability_of_new(*engine.score(request, texts))
    seconds = perf_counter() - started
    without = probability_of_new(*engine.score(replace(request, far=request.far[:-1]), texts))
    return Judged(is_right(case, site, snapshot.text), is_for_key, with_change, without, seconds)


def is_right(case: Case, site: EditSite, text: str) -> bool:
    """Whether the edit has the same result as one of the right swaps, ignoring blanks."""
    swap = case.swaps[-1]
    wanted = {_bare(text[:at] + swap.new + text[at + len(swap.old) :]) for at in case.right}
    return _bare(text[: site.start] + site.new + text[site.end :]) in wanted


def is_offered(judged: Judged, way: str, gate: float) -> bool:
    """Whether an edit is offered at its site, unless an earlier one is."""
    if judged.is_for_key and way != "by_key":
        return False
    return (judged.change_not_shown if way == "change_not_shown" else judged.probability_of_new) >= gate


def by_gate(rows: Sequence[tuple[Case, list[Judged]]], way: str, kind: str) -> dict[str, dict[str, Any]]:
    """The offers, the right offers, precision and recall for every gate."""
    chosen = [(case, found) for case, found in rows if kind in ("all", case.kind)]
    open_cases = sum(bool(case.right) for case, _ in chosen)
    figures = {}
    for gate in GATES:
        firsts = (next((each for each in found if is_offered(each, way, gate)), None) for _, found in chosen)
        offers = [each for each in firsts if each is not None]
        right = sum(each.is_right for each in offers)
        figures[str(gate)] = {
            "offers": len(offers),
            "right": right,
            "precision": round(right / len(offers), 3) if offers else None,
            "recall": round(right / open_cases, 3) if open_cases else None,
            "cases": len(chosen),
            "with_a_place_left": open_cases,
        }
    return figures


def table(record: dict[str, Any]) -> Table:
    made = Table("kind", *map(str, GATES), title="offers that are right / offers, by gate")
    for kind, figures in record["figures"]["unasked"].items():
        cells = (f"{each['right']}/{each['offers']}" for each in figures.values())
        first = next(iter(figures.values()))
        made.add_row(f"{kind} ({first['with_a_place_left']} of {first['cases']})", *cells)
    return made


def _bare(text: str) -> str:
    return "".join(text.split())


if __name__ == "__main__":
    sys.exit(main())
