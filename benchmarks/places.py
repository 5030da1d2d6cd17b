"""Measure where the next edit is: `python benchmarks/places.py --commits DIR --head FILE [--json] [--out FILE]`.

DIR is what `python -m mercury_lab.training commits` wrote; its split "test" is replayed: some steps of a commit
are made, and the head (`training places`) and the server's rules say where the next one is. A place is right if it is
within three lines of a step that is left; in quiet moments none is. The rules see the last step as word-by-word
edits; their answer after the last word that has one counts, and the model does not judge it. `first` figures are shares
of moments with a step left.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, islice
from pathlib import Path
from time import process_time
from typing import Any

from lsprotocol import types
from mercury_engine.places.candidates import Candidate, Kind
from mercury_engine.places.head import LikelyPlace, PlaceHead, distinct
from mercury_engine.text.lines import lines_of
from mercury_lab.evaluation import suite
from mercury_lab.training.commits.build import read_split
from mercury_lab.training.commits.moments import Moment
from mercury_lab.training.ranking.cases import Case, all_cases
from mercury_lab.training.ranking.figures import candidate_figures, is_right, place_figures
from rich.table import Table

from mercury_lsp.completion.next_edits.places import HEAD_FILE
from mercury_lsp.completion.next_edits.repeatable_edits import RepeatableEdits
from mercury_lsp.documents import document
from mercury_lsp.documents.languages import LANGUAGES

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from on_all import options as options_of_all  # noqa: E402
from on_edits.ranking_time import ranking_ms  # noqa: E402

_TOKEN = re.compile(r"\w+|\s+|.")

PARSE_SECONDS = 5.0
"""Budget of the rules' parses, so that a busy machine does not silence them."""

MAX_WORD_EDITS = 12
"""Word edits of a step that are replayed; after longer ones the rules have nothing to repeat anyway."""


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
    document.PAUSE_PARSE_SECONDS = PARSE_SECONDS
    by_repository = groupby(read_split(options.commits, options.split), key=lambda edit: edit.repository)
    edits = [edit for _, own in by_repository for edit in islice(own, options.limit)]
    if options.time:
        print(ranking_ms((file.text for edit in edits for file in edit.files), options.seed))
        return 0
    found = all_cases(edits, options.seed, options.workers)
    by_rules = [rules(case.moment) for case in suite.progress(found, "rules")]
    by_head = [distinct(case.candidates, head.probabilities(case.rows)[:-1], 3) for case in found]
    ranked = {
        "head": by_head,
        "rules": [unasked for unasked, _ in by_rules],
        "rules_by_key": [by_key for _, by_key in by_rules],
        "line_below": [line_below(case) for case in found],
    }
    record = {
        "candidates": candidate_figures(found),
        "figures": {name: place_figures(found, places) for name, places in ranked.items()},
        "where_rules_offer": where_rules_offer(found, ranked["rules"], ranked["head"]),
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


def rules(moment: Moment) -> tuple[list[LikelyPlace], list[LikelyPlace]]:
    """The sites that the server's rules find after the last step, in their order: unasked, and by key."""
    number = moment.edit.steps[moment.order[moment.done - 1]].file
    file = moment.edit.files[number]
    if file.language not in LANGUAGES:
        return [], []
    open_document, repeatable = document.Document("file:///a", file.language, 1, file.text), RepeatableEdits()
    answers: tuple[list[int], list[int]] = ([], [])
    for at, old, new, is_last in _word_edits(moment, number):
        snapshot = open_document.snapshot()
        span = (types.Position(*snapshot.position_at(offset)) for offset in (at, at + len(old)))
        change = types.TextDocumentContentChangePartial(types.Range(*span), new)
        repeatable.record(open_document.apply([change], 1) or [])
        for answer in answers:
            answer[:] = [offset + len(new) - len(old) if offset > at else offset for offset in answer]
        if is_last:
            open_document.finish_parsing()
            snapshot = open_document.snapshot()
            if (replacement := repeatable.replacement(snapshot)) is not None:
                for answer, invoked in zip(answers, (False, True), strict=True):
                    found = repeatable.proposals(replacement, snapshot, (), invoked)
                    answer[:] = [site.start for each in found for site in each.sites] or answer
    unasked, by_key = ([open_document.snapshot().position_at(offset)[0] for offset in answer] for answer in answers)
    return _outside_changes(moment, number, unasked), _outside_changes(moment, number, by_key)


def _outside_changes(moment: Moment, number: int, lines: Sequence[int]) -> list[LikelyPlace]:
    """The first three lines that no step has changed yet, as certain places."""
    changes = [change for change in moment.situation.changes if change.document == number]
    kept = [n for n in dict.fromkeys(lines) if not any(change.start <= n < change.end for change in changes)]
    return [LikelyPlace(Candidate(number, line, Kind.STALE), 1.0) for line in kept[:3]]


def _word_edits(moment: Moment, number: int) -> Iterator[tuple[int, str, str, bool]]:
    """Offset, old and new text of every edit of a document, in order, and whether it belongs to the last step."""
    for done in range(1, moment.done + 1):
        step = moment.edit.steps[moment.order[done - 1]]
        if step.file != number:
            continue
        before = Moment(moment.edit, moment.order, done - 1).open[0]
        lines = lines_of(moment.edit.files[number].text)
        made = [moment.edit.steps[n] for n in moment.order[: done - 1]]
        above = [s for s in made if s.file == number and s.start < step.start]
        kept = {n for s in above for n in range(s.start, s.end)}
        at = sum(len(line) for n, line in enumerate(lines[: step.start]) if n not in kept)
        at += sum(len(s.text) for s in above)
        old = "".join(lines[step.start : step.end])
        edits = list(_differences(old, before.text))
        if len(edits) > MAX_WORD_EDITS:
            edits = [(0, old, before.text)]
        for start, removed, inserted in edits:
            yield at + start, removed, inserted, done == moment.done


def _differences(old: str, new: str) -> Iterator[tuple[int, str, str]]:
    """The replaced words, from left to right; offsets are of the text in which those before are replaced."""
    ours, theirs = _TOKEN.findall(old), _TOKEN.findall(new)
    at = 0
    for tag, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        inserted = "".join(theirs[c:d])
        if tag != "equal":
            yield at, "".join(ours[a:b]), inserted
        at += len(inserted)


def line_below(case: Case) -> list[LikelyPlace]:
    """The simplest guesses: just below the last change, just above it, and further below."""
    last = case.moment.situation.changes[-1]
    lines = (last.end + 1, last.start - 2, last.end + 8)
    most = len(case.moment.situation.documents[last.document].lines)
    return [LikelyPlace(Candidate(last.document, line, Kind.NEAR), 1.0) for line in lines if 0 <= line < most]


def where_rules_offer(
    found: Sequence[Case], by_rules: list[list[LikelyPlace]], by_head: list[list[LikelyPlace]]
) -> dict[str, int]:
    """In moments in which the rules offer something: how often they are right, and the head."""
    offered = [(case, a, b) for case, a, b in zip(found, by_rules, by_head, strict=True) if a]
    return {
        "moments": len(offered),
        "rules_right": sum(is_right(case, a[:1]) for case, a, _ in offered),
        "head_right": sum(is_right(case, b[:1]) for case, _, b in offered),
        "quiet": sum(case.moment.is_quiet for case, _, _ in offered),
    }


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
