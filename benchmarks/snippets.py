"""Measure whether snippets help: `python benchmarks/snippets.py [--corpus DIR] [--limit N] [--json] [--out FILE]`.

At gaps to the end of the line, in files that import others of their corpus, it measures the model's surprise at the
true text (nats per token) without snippets, with the
server's snippets, and with snippets of another repository, which show the effect of length alone. DIR is a folder of
repositories.
"""

import math
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_lab.engine import Engine, finished
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import Gap, HeldOutFile, gap_at, held_out_files, sample_places
from on_all import options as options_of_all
from rich.table import Table

from mercury_lsp.context.workspace.choice import Snippet, SnippetKind, choose, snippets_of, words_of
from mercury_lsp.context.workspace.declarations import Declarer
from mercury_lsp.context.workspace.file_snippets import FILE_START_CHARS
from mercury_lsp.context.workspace.files import FileIndex
from mercury_lsp.context.workspace.imports import imports
from mercury_lsp.context.workspace.library import MAX_IMPORTED_FILES, MAX_PACKAGE_FILES
from mercury_lsp.context.workspace.workspace import CHOICE_REACH_CHARS

WORKSPACE_ROOT = "/corpus/"


class Repositories:
    """A corpus as the server would see it if it were one workspace."""

    def __init__(self, found: Sequence[HeldOutFile]):
        self.documents = {WORKSPACE_ROOT + document.name: document for document in found}
        self._index = FileIndex()
        for path in self.documents:
            self._index.add(path)
        self._declarer = Declarer(lambda: None)
        self._known: dict[str, list[Snippet]] = {}

    def imported(self, document: HeldOutFile) -> list[str]:
        """Files that a document imports."""
        path = WORKSPACE_ROOT + document.name
        wanted = imports(document.language, document.text, path)
        found = chain.from_iterable(self._index.resolve(each, path, MAX_PACKAGE_FILES) for each in wanted)
        return list(dict.fromkeys(found))[:MAX_IMPORTED_FILES]

    def shown(self, files: Sequence[str], around: frozenset[str]) -> list[str]:
        """The snippets of these files that the server would send."""
        candidates = [snippet for path in files for snippet in self._snippets(path)]
        return [snippet.text for snippet in choose(candidates, around)]

    def _snippets(self, path: str) -> list[Snippet]:
        if path not in self._known:
            document = self.documents[path]
            declared = self._declarer.declarations(document.language, document.text)
            parts = ((SnippetKind.DECLARATIONS, declared), (SnippetKind.CODE, document.text[:FILE_START_CHARS]))
            name, language = document.name, document.language
            self._known[path] = [each for kind, text in parts for each in snippets_of(kind, name, language, text)]
        return self._known[path]


def main() -> int:
    parser = options_of_all.parser("snippets", __doc__)
    options_of_all.add_corpus(parser, "repositories")
    options_of_all.add_sample(parser, 60, "gaps")
    options_of_all.add_threads(parser, 1)
    options = parser.parse_args()
    repositories = Repositories(held_out_files(options.corpus))
    cases = list(sample_gaps(repositories, options.limit, options.seed))
    if not cases:
        print(f"no file below {options.corpus} imports another one; name a folder of repositories", file=sys.stderr)
        return 0
    engine = Engine.load(options.model, device="cpu", threads=options.threads)
    rows = [compared(engine, gap, ways) for gap, ways in suite.progress(cases, "reading")]
    found = {way: summary(rows, way) for way in rows[0]}
    circumstances = {
        "model": engine.name,
        "gaps": len(rows),
        "seed": options.seed,
        "corpus": options.corpus.name,
        **options_of_all.circumstances(),
    }
    suite.deliver(found | circumstances, table(found), options)
    return 0


def sample_gaps(repositories: Repositories, limit: int, seed: int) -> Iterator[tuple[Gap, dict[str, list[str]]]]:
    """Gaps for which the server would send snippets, and the blocks by way; the same seed gives the same gaps."""
    rng = random.Random(f"snippets {seed}")
    importing = [each for each in repositories.documents.values() if repositories.imported(each)]
    if not importing:
        return
    count = 0
    for document, start, end in sample_places(importing, 4 * limit, seed, "rest_of_line"):
        text = document.text
        around = words_of(text[max(0, start - CHOICE_REACH_CHARS) : start] + text[end : end + CHOICE_REACH_CHARS])
        if shown := repositories.shown(repositories.imported(document), around):
            strangers = [p for p, other in repositories.documents.items() if other.repository != document.repository]
            foreign = repositories.shown(rng.sample(strangers, min(MAX_IMPORTED_FILES, len(strangers))), around)
            yield gap_at(document, start, end, "rest_of_line"), {"none": [], "shown": shown, "foreign": foreign}
            count += 1
        if count == limit:
            return


def compared(engine: Engine, gap: Gap, ways: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """By way: the nats over the gap, its tokens, tokens prefilled."""
    found = {}
    for way, blocks in ways.items():
        asked = replace(gap, request=replace(gap.request, far=(*blocks, *gap.request.far)))
        nats, tokens, read = reader_nats(engine, asked.request, gap.truth)
        found[way] = {"nats": nats, "tokens": tokens, "read": read}
    return found


def reader_nats(engine: Engine, request: FillRequest, truth: str) -> tuple[float, int, int]:
    """The reader's nats of the true text, left to right after the blocks; tokens, prefilled ones."""
    cut = engine.decoder.contexts.cut(request)
    target = engine.tokenizer.encode(cut.spell + truth)
    around = engine.surroundings(request, [*cut.read, *cut.known])
    reading = Verifier.after(engine.reader, around)
    [nats] = finished(reading.score([target]), engine.reader)
    return -nats, len(target), around.cached.tokens_read


def summary(rows: list[dict[str, dict[str, Any]]], way: str) -> dict[str, float | int | None]:
    """Means, and a way's difference from no snippets with the standard error of the mean over gaps."""
    tokens = sum(row[way]["tokens"] for row in rows)
    differences = [row[way]["nats"] - row["none"]["nats"] for row in rows]
    return {
        "reader_nats": sum(row[way]["nats"] for row in rows) / tokens,
        "difference": sum(differences) / tokens,
        "standard_error": statistics.stdev(differences) * math.sqrt(len(rows)) / tokens if len(rows) > 1 else None,
        "better": sum(each < 0 for each in differences),
        "worse": sum(each > 0 for each in differences),
        "tokens_read": statistics.fmean(row[way]["read"] for row in rows),
    }


def table(found: dict[str, dict[str, Any]]) -> Table:
    shown = Table("snippets", *next(iter(found.values())))
    for way, figures in found.items():
        shown.add_row(way, *(f"{each:.3f}" if isinstance(each, float) else str(each) for each in figures.values()))
    return shown


if __name__ == "__main__":
    sys.exit(main())
