"""Lengths of gaps: `python -m mercury_lab.evaluation lengths --model NAME [--json]`.

Fits the constants of the search for a gap's length (`decoding.diffusion.length`) on every second file, for a masked
diffusion model with full attention, and measures on the others how often the length and the text are the author's: with
the model's own constants, the published and the fitted ones, and at the true length, which nobody knows.
`settings.json` takes the constants as `{"decoding": {"length_bias": [...]}}`.

Dimensions: N pairs of a gap and a length, W wanted rows.
"""

from collections.abc import Sequence
from dataclasses import astuple, replace
from itertools import product

import numpy as np
from mercury_engine.api import Control
from mercury_engine.decoding.diffusion.decoder import DiffusionDecoder
from mercury_engine.decoding.diffusion.layouts import TwoSided
from mercury_engine.decoding.diffusion.length import LengthBias
from mercury_engine.decoding.diffusion.rules import entropy_bound
from mercury_engine.decoding.diffusion.texts import GapText
from mercury_engine.decoding.hypothesis import hypotheses_of
from mercury_engine.errors import RequestError
from mercury_engine.models.row_answers import Tokens
from rich.table import Table

from mercury_lab.engine import Engine, finished
from mercury_lab.evaluation import suite
from mercury_lab.evaluation.gaps import Gap, gaps
from mercury_lab.evaluation.judge import exact, fitted
from mercury_lab.intervals import wilson

KINDS = ("rest_of_line", "whole_line")

LONGEST = 24
"""Lengths that are tried, in slots; longer gaps are left out."""

NEAR = 4
"""Lengths so near to the true one are left out of the fit: there the masks are surer than usual."""

RATES = 0.01 * 1.35 ** np.arange(20)
"""Rates of decay that the fit tries, per slot."""


def length_of(engine: Engine, gap: Gap) -> int:
    """Tokens of the author's text."""
    return len(engine.tokenizer.encode(engine.decoder.contexts.cut(gap.request).spell + gap.truth))


def sure(engine: Engine, gap: Gap) -> list[float]:
    """The mean of the masks' highest probabilities of a fill that has not begun, of one slot first."""
    decoder = engine.decoder
    assert isinstance(decoder, DiffusionDecoder)
    layout, cut = decoder.layout, decoder.contexts.cut(gap.request)
    around = finished(layout.read(gap.request, cut.read), engine.reader)
    [written, *_] = hypotheses_of(gap.request, decoder.rules, cut)
    mask = Tokens(engine.reader.config.mask_id)  # without an end, so that all slots are text
    text, found = GapText(written, mask, layout.ends, Control()), list[float]()
    for slots in range(1, LONGEST + 1):
        text.open(slots)
        [told] = finished(layout.told(around, [text], entropy_bound()), engine.reader)
        found.append(float(np.exp(told.logp_W).mean()))
    return found


def fitted_bias(found: Sequence[tuple[int, Sequence[float]]]) -> LengthBias:
    """The constants of least squares for gaps of a length whose masks are so sure: heights and floor for each pair of
    rates, then the best pair."""
    of = [(n, sure) for length, each in found for n, sure in enumerate(each, 1) if abs(n - length) > NEAR]
    n_N, sure_N = np.array(of).T
    best, least = LengthBias(), np.inf
    for fast, slow in product(RATES, RATES):
        if fast > slow:
            terms = np.stack((np.exp(-fast * n_N), np.exp(-slow * n_N), np.ones_like(n_N)), 1)
            heights, residual, rank, _ = np.linalg.lstsq(terms, sure_N, rcond=None)
            if rank == 3 and min(heights) > 0 and residual[0] < least:
                least, best = residual[0], LengthBias(heights[0], fast, heights[1], slow, heights[2])
    return best


def figures(engine: Engine, found: Sequence[tuple[Gap, int]], is_known: bool = False) -> suite.SuiteRecord:
    """The share of right texts, with its interval, and of right lengths; and the passes. Gaps have their lengths."""
    right, off, passes = list[bool](), list[int](), list[int]()
    for gap, length in suite.progress(found, "fills"):
        fill = engine.fill(replace(gap.request, max_slots=length if is_known else LONGEST))
        right.append(exact(fitted(fill.text, gap.request), gap.truth))
        off.append(abs(fill.tokens - length))
        passes.append(fill.steps)
    return {
        "exact": float(np.mean(right)),
        "interval": wilson(sum(right), len(right)),
        "length_right": float(np.mean(np.array(off) == 0)),
        "within_two": float(np.mean(np.array(off) <= 2)),
        "passes": float(np.mean(passes)),
    }


def main(argv: list[str]) -> int:
    options = suite.parser("lengths", __doc__, 40, "gaps of each kind").parse_args(argv)
    engine = suite.load_engine(options)
    decoder = engine.decoder
    if not isinstance(decoder, DiffusionDecoder) or not isinstance(decoder.layout, TwoSided):
        raise RequestError(f"{engine.name} searches no length; name a masked model with full attention with --model")
    cases = list(gaps(options.corpus, options.limit, options.seed, KINDS))
    paths = sorted({gap.path for gap in cases})
    fitting, measured = (
        [
            (gap, size)
            for gap in cases
            if paths.index(gap.path) % 2 == half and (size := length_of(engine, gap)) <= LONGEST
        ]
        for half in (0, 1)
    )
    if not fitting or not measured:
        raise RequestError("too few gaps; raise --limit, or name a larger --corpus")
    bias = fitted_bias([(size, sure(engine, gap)) for gap, size in suite.progress(fitting, "lengths")])
    biases = {"published constants": LengthBias(), "fitted constants": bias}
    engines = {
        name: engine.varied(replace(decoder.options, length_bias=astuple(each))) for name, each in biases.items()
    }
    known = engine.varied(replace(decoder.options, searches_length=False))
    record = {
        "length_bias": [*astuple(bias)],
        "fitted_on": len(fitting),
        "measured_on": len(measured),
        "rules": {name: figures(each, measured) for name, each in {"the model's own": engine, **engines}.items()}
        | {"known length": figures(known, measured, is_known=True)},
        **suite.circumstances(engine, options),
    }
    suite.deliver(record, _table(record), options)
    return 0


def _table(record: suite.SuiteRecord) -> Table:
    table = Table("rule", "exact", "95 %", "length right", "within two", "passes")
    for name, row in record["rules"].items():
        low, high = row["interval"]
        shares = f"{row['length_right']:.1%}", f"{row['within_two']:.1%}", f"{row['passes']:.1f}"
        table.add_row(name, f"{row['exact']:.1%}", f"{low:.1%} to {high:.1%}", *shares)
    return table
