"""Lengths of gaps: `python -m mercury_lab.evaluation lengths --model NAME [--json]`.

Refits the constants of `decoding.diffusion.length` for a masked diffusion model, and measures what each rule for a
gap's length finds: the search with the published constants and with those refitted, the length at which the masks are
surest whatever is usual, and the model's own end where it has one. The constants are fitted on every second file, the
others are measured. `settings.json` takes them as `{"decoding": {"length_bias": [...]}}`.

Dimensions: S slots, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from mercury_engine.decoding.diffusion.full_attention import FullAttentionDecoder
from mercury_engine.decoding.diffusion.length import CalibratedLength, LengthBias
from mercury_engine.engine import Engine
from mercury_engine.errors import RequestError
from mercury_engine.models import batching
from mercury_engine.models.arrays import FloatArray, MaskArray, on_host
from mercury_engine.models.network import CanvasForward
from rich.table import Table

from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import Gap, gaps

KINDS = ("rest_of_line", "whole_line")

LONGEST = 32
"""Lengths that are tried, in slots; longer gaps are left out."""

NEAR = 4
"""Lengths so near to the true one are left out of the fit: there the masks are surer than usual."""

RATES = 0.01 * 1.35 ** np.arange(20)
"""Rates of decay that the fit tries, per slot."""


@dataclass(frozen=True, slots=True)
class MeasuredGap:
    """A gap's length, how sure its masks are at each length, and the length that the model writes by itself."""

    length: int
    sure: tuple[float, ...]
    """Mean of the masks' highest probabilities, of one slot first."""
    own: int | None


def measured(engine: Engine, gap: Gap) -> MeasuredGap | None:
    """The gap with one pass for each length; None for one that is too long."""
    length = len(engine.tokenizer.encode(gap.truth))
    if not 0 < length <= LONGEST:
        return None
    masks = _masks(engine, gap)
    sure = tuple(float(np.exp(masks(slots).max(-1)).mean()) for slots in range(1, LONGEST + 1))
    is_full = isinstance(engine.decoder, FullAttentionDecoder)
    return MeasuredGap(length, sure, None if is_full else len(engine.tokenizer.encode(engine.fill(gap.request).text)))


def _masks(engine: Engine, gap: Gap) -> Callable[[int], FloatArray]:
    """Log-probabilities [S,V] of the tokens of a text in so many masks between the gap's sides."""
    decoder, mask = engine.decoder, engine.reader.config.mask_id
    hidden_V = np.zeros(engine.reader.config.vocab_size, np.bool_)
    hidden_V[decoder.rules.stopping.ends_text] = True
    if isinstance(decoder, FullAttentionDecoder):
        sides, cache = decoder.sides(gap.request), decoder.cache

        def full(slots: int) -> FloatArray:
            return batching.finished(cache.reread(sides, [mask] * slots, cache.overlap(sides)), engine.reader)

        return lambda slots: _without(full(slots), hidden_V)
    denoiser = engine.parts.denoiser
    assert denoiser is not None
    context = engine.surroundings(gap.request, decoder.contexts.cut(gap.request).read)

    def canvas(slots: int) -> FloatArray:
        ids_R = np.array([context.last, *[mask] * slots], np.int64)
        sides = context.cached.before, context.cached.after, context.ends
        return on_host(batching.run(denoiser, [CanvasForward(denoiser, ids_R, *sides, wanted=range(slots))])[0])

    return lambda slots: _without(canvas(slots), hidden_V)


def _without(logp_SV: FloatArray, hidden_V: MaskArray) -> FloatArray:
    """The log-probabilities of the tokens that are not hidden, which sum to one."""
    kept_SV = np.where(hidden_V, -np.inf, logp_SV[:, : len(hidden_V)])
    return kept_SV - np.logaddexp.reduce(kept_SV, -1, keepdims=True)


def fitted(found: Sequence[MeasuredGap]) -> LengthBias:
    """The constants of least squares: heights and floor for each pair of rates, then the best pair."""
    of = [(n, sure) for each in found for n, sure in enumerate(each.sure, 1) if abs(n - each.length) > NEAR]
    n_N, sure_N = np.array(of).T
    best, least = LengthBias(), np.inf
    for fast, slow in product(RATES, RATES):
        if fast > slow:
            terms = np.stack((np.exp(-fast * n_N), np.exp(-slow * n_N), np.ones_like(n_N)), 1)
            heights, residual, rank, _ = np.linalg.lstsq(terms, sure_N, rcond=None)
            if rank == 3 and min(heights) > 0 and residual[0] < least:
                least, best = residual[0], LengthBias((heights[0], fast), (heights[1], slow), heights[2])
    return best


def searched(each: MeasuredGap, bias: LengthBias) -> tuple[int, int]:
    """The length that the search finds, and the lengths that it tries."""
    search = CalibratedLength(bias, most=LONGEST).search()
    slots, tried = next(search), 1
    while True:
        try:
            slots = search.send(each.sure[slots - 1])
        except StopIteration as end:
            return int(end.value), tried
        tried += 1


def rules(bias: LengthBias) -> dict[str, Callable[[MeasuredGap], tuple[int | None, int]]]:
    """By name: the length that a rule finds and the passes that it takes; None where the model has no such rule."""
    return {
        "published constants": lambda each: searched(each, LengthBias()),
        "refitted constants": lambda each: searched(each, bias),
        "surest": lambda each: (int(np.argmax(each.sure)) + 1, LONGEST),
        "likelier than usual, all lengths": lambda each: (
            1 + int(np.argmax([sure / bias.at(n) for n, sure in enumerate(each.sure, 1)])),
            LONGEST,
        ),
        "the model's own end": lambda each: (each.own, 0),
    }


def figures(found: Sequence[MeasuredGap], bias: LengthBias) -> dict[str, dict[str, float]]:
    """By rule: the share of gaps whose length it finds, or misses by two slots at most, and its passes."""
    made = dict[str, dict[str, float]]()
    for name, rule in rules(bias).items():
        pairs = [(each.length, *rule(each)) for each in found]
        off = [abs(length - chosen) for length, chosen, _ in pairs if chosen is not None]
        if off:
            made[name] = {
                "right": float(np.mean(np.array(off) == 0)),
                "within_two": float(np.mean(np.array(off) <= 2)),
                "mean_error": float(np.mean(off)),
                "passes": float(np.mean([passes for _, _, passes in pairs])),
            }
    return made


def main(argv: list[str]) -> int:
    options = suite.parser("lengths", __doc__, 40, "gaps of each kind").parse_args(argv)
    engine = suite.load_engine(options)
    attention = engine.reader.config.masked_attention
    if engine.reader.config.kind != "masked" or (attention is not None and attention.block is not None):
        raise RequestError(
            f"{engine.name} needs no length before it writes; name a masked diffusion model with --model"
        )
    cases = list(gaps(options.corpus, options.limit, options.seed, KINDS))
    paths = sorted({gap.path for gap in cases})
    taught, held_out = list[MeasuredGap](), list[MeasuredGap]()
    for gap in suite.progress(cases, "lengths"):
        if (each := measured(engine, gap)) is not None:
            (held_out if paths.index(gap.path) % 2 else taught).append(each)
    if not taught or not held_out:
        raise RequestError("too few gaps; raise --limit, or name a larger --corpus")
    bias = fitted(taught)
    record = {
        "length_bias": [*bias.fast, *bias.slow, bias.floor],
        "fitted_on": len(taught),
        "measured_on": len(held_out),
        "rules": figures(held_out, bias),
        **suite.circumstances(engine, options),
    }
    suite.deliver(record, _table(record), options, lambda *_: None)
    return 0


def _table(record: suite.SuiteRecord) -> Table:
    table = Table("rule", "right", "within two slots", "mean error", "passes")
    for name, row in record["rules"].items():
        cells = f"{row['right']:.1%}", f"{row['within_two']:.1%}", f"{row['mean_error']:.1f}", f"{row['passes']:.1f}"
        table.add_row(name, *cells)
    return table
