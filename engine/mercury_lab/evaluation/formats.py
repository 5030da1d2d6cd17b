"""Compare the ways to show a gap to a model: `python -m mercury_lab.evaluation formats --model DIR`.

- cached: the engine as it runs, in the model's own gap format, read in blocks that are cached;
- uncached: the same format over the same characters in one causal run, as in pretraining; the upper bound;
- blocks: blocks without markers, as for a model that has no gap format.

It reports how often each fills a gap exactly as its author did, and the nats of the author's text. Fills end by the
same rules in all three. n-gram lookup is off.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mercury_engine.api import FillRequest
from mercury_engine.decoding.autoregressive.verifier import Verifier
from mercury_engine.decoding.context_reader import ContextReader
from mercury_engine.errors import RequestError
from mercury_engine.kv_cache.cache import BlockCache, GapContext
from mercury_engine.models.batching import ForwardSteps
from mercury_engine.prompt.gap_format import split_line
from rich.table import Table

from mercury_lab.engine import Engine, finished
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import GAP_KINDS, Gap, gaps
from mercury_lab.evaluation.judge import exact, fitted
from mercury_lab.intervals import wilson

UPPER_BOUND = "uncached"


@dataclass(frozen=True, slots=True)
class Answer:
    """One way's answer to a gap: nats and tokens of the true text, and whether the fill is right."""

    nats: float
    tokens: int
    right: bool


Way = Callable[[Gap], Answer]


def engine_way(engine: Engine) -> Way:
    """How an engine reads a gap, and its fill."""

    def answer(gap: Gap) -> Answer:
        text = fitted(engine.fill(gap.request).text, gap.request)
        return Answer(*_nats(engine, gap), exact(text, gap.truth))

    return answer


class CausalReader(ContextReader):
    """Reads a gap format in one causal run; an edit anywhere reads everything after it again."""

    def read(self, request: FillRequest, near: list[int], leaves: bool = False) -> ForwardSteps[GapContext]:
        assert self.markers is not None
        head, rest = split_line("".join((*request.far, request.near)))[0], "".join(request.suffix)
        ids = self.markers.stack(self.tokenizer.block(head), self.tokenizer.block(rest), tuple(near))
        return (yield from self.cache.context([], ids, []))


def uncached(engine: Engine) -> Engine:
    """An engine with the same model that reads its gap format in one causal run."""
    cache = BlockCache(engine.reader, engine.cache.start_id)
    return Engine(engine.parts, CausalReader(cache, engine.tokenizer, engine.parts.markers))


def without_markers(engine: Engine) -> Engine:
    """An engine with the same model that reads blocks without markers."""
    return Engine(replace(engine.parts, markers=None))


def figures(rows: Sequence[dict[str, Answer]]) -> dict[str, suite.SuiteRecord]:
    """For each way its share of right fills with a 95 % interval, its nats, and how many the upper bound saves."""
    return {way: _figures([row[way] for row in rows], [row[UPPER_BOUND] for row in rows]) for way in rows[0]}


def main(argv: list[str]) -> int:
    parser = suite.parser("formats", __doc__, 120, "gaps of every kind")
    parser.add_argument("--kinds", nargs="+", choices=GAP_KINDS, default=list(GAP_KINDS))
    options = parser.parse_args(argv)
    engine = suite.load_engine(options)
    if engine.parts.markers is None:
        raise RequestError(f"{engine.name} does not read in a gap format; name another --model")
    ways = {
        "cached": engine_way(engine),
        UPPER_BOUND: engine_way(uncached(engine)),
        "blocks": engine_way(without_markers(engine)),
    }
    record: suite.SuiteRecord = {}
    for kind in options.kinds:
        cases = list(gaps(options.corpus, options.limit, options.seed, (kind,)))
        asked = [replace(gap, request=replace(gap.request, lookup_text=())) for gap in cases]
        rows = [{name: way(gap) for name, way in ways.items()} for gap in suite.progress(asked, kind)]
        record[kind] = {"count": len(rows), **figures(rows)}
    record |= {"format": engine.parts.markers.family, **suite.circumstances(engine, options)}
    suite.deliver(record, _table(record, options.kinds, [*ways]), options)
    return 0


def _nats(engine: Engine, gap: Gap) -> tuple[float, int]:
    """Nats of the true text after the engine's context, and its tokens."""
    cut = engine.decoder.contexts.cut(gap.request)
    target = engine.tokenizer.encode(cut.spell + gap.truth)
    around = engine.surroundings(gap.request, cut.read)
    [nats] = finished(Verifier(engine.reader, around, cut.known).score([target]), engine.reader)
    return -nats, len(target)


def _figures(answers: Sequence[Answer], bounds: Sequence[Answer]) -> suite.SuiteRecord:
    differences = [ours.nats - bound.nats for ours, bound in zip(answers, bounds, strict=True)]
    right = sum(answer.right for answer in answers)
    error = statistics.stdev(differences) / math.sqrt(len(differences)) if len(differences) > 1 else None
    return {
        "exact_match": right / len(answers),
        "interval": wilson(right, len(answers)),
        "nats_per_token": sum(a.nats for a in answers) / sum(a.tokens for a in answers),
        "nats_per_gap_more": statistics.fmean(differences),
        "standard_error": error,
    }


def _table(record: suite.SuiteRecord, kinds: Sequence[str], ways: Sequence[str]) -> Table:
    table = Table("span", "read", "exact match", "95 %", "nats a token", "nats a gap more", "count")
    for kind in kinds:
        for way in ways:
            found = record[kind][way]
            low, high = found["interval"]
            more = f"{found['nats_per_gap_more']:+.2f} ± {found['standard_error'] or 0:.2f}"
            shares = suite.percent(found["exact_match"]), f"{low:.0%} to {high:.0%}", f"{found['nats_per_token']:.3f}"
            table.add_row(kind, way, *shares, more if way != UPPER_BOUND else "", str(record[kind]["count"]))
    return table
